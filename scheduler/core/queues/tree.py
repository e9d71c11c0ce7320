"""The tree of queues: who is below whom, and which queues cannot be used as they are written.

A queue that names a parent that does not exist, or whose parents form a circle, hangs below the root with a sentence
that says so, and takes no work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Queue


class QueueTree(msgspec.Struct, frozen=True, eq=False):
    """All queues by name; built once per change of them by `tree_of`.

    `children` has the names below each queue that has some, sorted; those of ROOT_QUEUE are the top queues. `problems`
    has a sentence for each queue that cannot be used. `top_down` is every name but the root's, each after its parent.
    `implicit`: nobody wrote the queue `default`.
    """

    queues: Mapping[str, Queue]
    children: Mapping[str, tuple[str, ...]]
    problems: Mapping[str, str]
    top_down: tuple[str, ...]
    paths: Mapping[str, tuple[str, ...]]
    implicit: bool = False

    def path(self, queue: str) -> tuple[str, ...]:
        """The queue, its parents upwards, ROOT_QUEUE last; a queue that is not known hangs below the root."""
        return self.paths.get(queue) or (queue, ROOT_QUEUE)

    def parent(self, queue: str) -> str:
        """The queue above this one; the root's is the root."""
        path = self.path(queue)
        return path[1] if len(path) > 1 else ROOT_QUEUE

    def leaf(self, queue: str) -> bool:
        """Whether no queue is below it; only such queues take work."""
        return queue not in self.children

    def weight(self, queue: str) -> int:
        """Its share against its siblings; a queue that is not known weighs 1."""
        known = self.queues.get(queue)
        return known.weight if known is not None else 1

    def apart(self, one: str, other: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Both paths below the lowest ancestor that the queues share, which is in neither."""
        ours, theirs = self.path(one), self.path(other)
        shared, most = 1, min(len(ours), len(theirs))
        while shared < most and ours[-shared - 1] == theirs[-shared - 1]:
            shared += 1
        return ours[:-shared], theirs[:-shared]


def tree_of(queues: Iterable[Queue]) -> QueueTree:
    """The tree of these queues, and of `default`, without quota, where none of them has that name.

    Of several queues of one name the first counts.
    """
    known: dict[str, Queue] = {}
    for queue in queues:
        known.setdefault(queue.name, queue)
    implicit = DEFAULT_QUEUE not in known
    if implicit:
        known[DEFAULT_QUEUE] = Queue()
    problems = {name: problem for name in sorted(known) if (problem := _problem(known, name))}
    above = {name: ROOT_QUEUE if name in problems else queue.parent for name, queue in known.items()}
    children: dict[str, list[str]] = {}
    for name in sorted(above):
        children.setdefault(above[name], []).append(name)
    paths: dict[str, tuple[str, ...]] = {ROOT_QUEUE: (ROOT_QUEUE,)}
    top_down: list[str] = []
    waiting = list(reversed(children[ROOT_QUEUE]))
    while waiting:
        name = waiting.pop()
        top_down.append(name)
        paths[name] = (name, *paths[above[name]])
        waiting.extend(reversed(children.get(name, ())))
    listed = {name: tuple(below) for name, below in children.items()}
    return QueueTree(known, listed, problems, tuple(top_down), paths, implicit)


def _problem(known: Mapping[str, Queue], name: str) -> str:
    """Why the queue cannot hang where it says; empty where it can, whatever is wrong further up."""
    parent = known[name].parent
    if parent == ROOT_QUEUE:
        return ""
    if parent not in known:
        return f'queue "{name}": its parent "{parent}" does not exist; create it, or name another in spec.parent'
    circle = _circle(known, name)
    if circle:
        return f'queue "{name}": its parents form a circle ({" > ".join(circle)}); give one of them another parent'
    return ""


def _circle(known: Mapping[str, Queue], name: str) -> tuple[str, ...]:
    """The circle that the queue is part of, itself first and last; empty where it is in none."""
    passed = [name]
    above = known[name].parent
    while above in known and above not in passed:
        passed.append(above)
        above = known[above].parent
    return (*passed, name) if above == name else ()

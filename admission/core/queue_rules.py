"""Rules of the tree of queues: what a written queue may not be to its parent, and to the queues below it.

Each finding is one sentence with the numbers. What runs is never a reason to refuse a smaller amount: whoever takes
quota from a team cannot wait for its jobs, and what runs stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, Cell, Queue, QuotaCell
from model.resources import amount_text

_SHOWN = 3


class KnownQueue(msgspec.Struct, frozen=True):
    """A queue that is there; `where` names its object; `running` and `waiting` are jobs, `used` is what they have."""

    queue: Queue
    where: str
    running: int = 0
    waiting: int = 0
    used: Mapping[str, int] = {}


class QueueWords(msgspec.Struct, frozen=True):
    """The fields of an API, as sentences name them; `guarded` are those whose sum may not exceed the parent's.

    `bounded` is whether a queue may not have a higher maximum than those it is part of.
    """

    parent: str
    guaranteed: str
    nominal: str
    maximum: str
    guarded: tuple[str, ...] = ("guaranteed",)
    bounded: bool = True


_GUARDED: Mapping[str, Callable[[QuotaCell], int | None]] = {
    "guaranteed": lambda cell: cell.guaranteed,
    "nominal": lambda cell: cell.nominal,
}


_NAMED: Mapping[str, Callable[[Queue], tuple[str, ...]]] = {
    "spec.borrowing.allowedQueues": lambda queue: queue.lenders,
    "spec.preemption.allowPreemptFrom": lambda queue: queue.preemption.preemptors,
}
"""Other queues that ours may name; those of other APIs name none."""


def refusals(where: str, new: Queue, known: Mapping[str, KnownQueue], words: QueueWords) -> tuple[str, ...]:
    """What is wrong with a queue as it is to be stored; `known` are the queues there are, by name."""
    others = {name: each for name, each in known.items() if name != new.name}
    if told := _misplaced(where, new, others, words):
        return (told,)
    children = [each.queue for each in others.values() if each.queue.parent == new.name]
    parent = others[new.parent].queue if new.parent != ROOT_QUEUE else None
    found = list[str]()
    for field in words.guarded:
        found += _of_children(where, new, children, words, field)
        if parent is not None:
            siblings = [each.queue for each in others.values() if each.queue.parent == new.parent]
            found += _of_parent(where, new, parent, siblings, words, field)
    if words.bounded:
        found += _bounds(where, new, others, words)
    return tuple(found)


def warnings(where: str, new: Queue, known: Mapping[str, KnownQueue], words: QueueWords) -> tuple[str, ...]:
    """What is let in and may surprise its writer."""
    found, own, parent = list[str](), known.get(new.name), known.get(new.parent)
    for (_, resource), cell in new.cells.items():
        used = own.used.get(resource, 0) if own is not None else 0
        if cell.maximum is not None and used > cell.maximum:
            most, has = amount_text(cell.maximum, resource), amount_text(used, resource)
            told = f"{where}: {words.maximum}.{resource} is {most}, less than the {has} in use"
            found.append(f"{told}: what runs stays, and nothing more starts until enough of it ended")
    for field, names in _NAMED.items():
        unknown = [name for name in names(new) if name not in known and name not in (new.name, DEFAULT_QUEUE)]
        if unknown:
            found.append(f"{where}: {field}: no such {_listed(unknown)}; create what is meant, or name another")
    first = parent is not None and not any(each.queue.parent == new.parent for each in known.values())
    if first and parent is not None and (parent.running or parent.waiting):
        told = f"{where}: {words.parent} {new.parent} has {_jobs(parent)} of its own"
        found.append(f"{told}: with a queue below it, those that wait are held; let them name that")
    return tuple(found)


def undeletable(where: str, name: str, known: Mapping[str, KnownQueue]) -> str:
    """Why a queue cannot go yet, empty where it can: another object of the name, or nobody in it or below it."""
    own = known.get(name)
    if own is None or own.where != where:
        return ""
    children = sorted(each.queue.name for each in known.values() if each.queue.parent == name)
    if children:
        verb = "is" if len(children) == 1 else "are"
        return f"{where}: {_listed(children)} {verb} part of it; delete or move that first"
    if own.running or own.waiting:
        them, their = ("it", "its") if own.running + own.waiting == 1 else ("them", "their")
        return f"{where}: {_jobs(own)} in it; delete {them} first, or wait for {their} end"
    return ""


def _misplaced(where: str, new: Queue, others: Mapping[str, KnownQueue], words: QueueWords) -> str:
    if new.parent == ROOT_QUEUE:
        return ""
    if new.parent == new.name:
        return f"{where}: {words.parent} is {new.name} itself; name another queue, or none"
    if new.parent not in others:
        return f"{where}: {words.parent} is {new.parent}, and there is no queue of that name; create it first"
    path = _path(new.parent, others)
    if new.name in path:
        circle = " < ".join((new.name, *path[: path.index(new.name) + 1]))
        return f"{where}: {words.parent} {new.parent} makes a circle, {circle}; name another queue, or none"
    return ""


def _path(name: str, known: Mapping[str, KnownQueue]) -> tuple[str, ...]:
    """From a queue up; the last one is that of a circle, or one that is not known."""
    path = list[str]()
    while name != ROOT_QUEUE and name not in path:
        path.append(name)
        name = known[name].queue.parent if name in known else ROOT_QUEUE
    return tuple(path) if name == ROOT_QUEUE else (*path, name)


def _of_children(where: str, new: Queue, children: list[Queue], words: QueueWords, field: str) -> Iterator[str]:
    """The queues below it must have room in what it has."""
    for cell in _cells(children):
        own = _amount(new, cell, field)
        total = sum(_amount(each, cell, field) or 0 for each in children)
        if own is not None and total > own:
            names = _listed(sorted(each.name for each in children if _amount(each, cell, field)))
            has, need = amount_text(own, cell[1]), amount_text(total, cell[1])
            told = f"{where}: {_word(words, field)}.{cell[1]} is {has}, less than the {need} of {names} below it"
            yield f"{told}; raise it, or lower theirs"


def _of_parent(
    where: str, new: Queue, parent: Queue, siblings: list[Queue], words: QueueWords, field: str
) -> Iterator[str]:
    """With its siblings it must have room in what its parent has."""
    for cell in _cells([new]):
        own, has = _amount(new, cell, field) or 0, _amount(parent, cell, field)
        total = own + sum(_amount(each, cell, field) or 0 for each in siblings)
        if own and has is not None and total > has:
            need, most = amount_text(total, cell[1]), amount_text(has, cell[1])
            told = f"{where}: {_word(words, field)}.{cell[1]} is {amount_text(own, cell[1])}"
            yield f"{told}: the queues of {parent.name} would have {need} together, more than its {most}; lower it"


def _bounds(where: str, new: Queue, others: Mapping[str, KnownQueue], words: QueueWords) -> Iterator[str]:
    """No maximum above that of a queue higher up, which would count all the same."""
    for cell, quota in new.cells.items():
        if quota.maximum is None:
            continue
        above = _highest(new.parent, cell, others)
        own = amount_text(quota.maximum, cell[1])
        if above is not None and quota.maximum > above[1]:
            most = amount_text(above[1], cell[1])
            told = f"{where}: {words.maximum}.{cell[1]} is {own}, more than the {most} of {above[0]} above it"
            yield f"{told}; lower it, or raise that"
        for below in _below(new.name, cell, others):
            most = amount_text(below.cells[cell].maximum or 0, cell[1])
            if (below.cells[cell].maximum or 0) > quota.maximum:
                told = f"{where}: {words.maximum}.{cell[1]} is {own}, less than the {most} of {below.name} below it"
                yield f"{told}; raise it, or lower that"


def _highest(name: str, cell: Cell, known: Mapping[str, KnownQueue]) -> tuple[str, int] | None:
    """The nearest queue upwards that has a maximum, and that."""
    for each in _path(name, known):
        found = known[each].queue.cells.get(cell) if each in known else None
        if found is not None and found.maximum is not None:
            return each, found.maximum
    return None


def _below(name: str, cell: Cell, known: Mapping[str, KnownQueue]) -> Iterator[Queue]:
    """The nearest queues downwards that have a maximum."""
    seen, waiting = {name}, [name]
    while waiting:
        parent = waiting.pop()
        for each in sorted(known):
            queue = known[each].queue
            if queue.parent != parent or each in seen:
                continue
            seen.add(each)
            found = queue.cells.get(cell)
            if found is not None and found.maximum is not None:
                yield queue
            else:
                waiting.append(each)


def _cells(queues: list[Queue]) -> tuple[Cell, ...]:
    return tuple(sorted({cell for queue in queues for cell in queue.cells}))


def _amount(queue: Queue, cell: Cell, field: str) -> int | None:
    """None: it says nothing, and is not bound by it."""
    found = queue.cells.get(cell)
    if found is None:
        return 0 if field == "guaranteed" else None
    return _GUARDED[field](found)


def _word(words: QueueWords, field: str) -> str:
    return words.guaranteed if field == "guaranteed" else words.nominal


def _jobs(own: KnownQueue) -> str:
    parts = [
        f"{count} job{'' if count == 1 else 's'} that {verb}{'s' if count == 1 else ''}"
        for count, verb in _counted(own)
    ]
    return " and ".join(parts)


def _counted(own: KnownQueue) -> Iterator[tuple[int, str]]:
    for count, verb in ((own.running, "run"), (own.waiting, "wait")):
        if count:
            yield count, verb


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    shown = ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"queue{'' if len(names) == 1 else 's'} {shown}"

"""Turns of gangs that are bound in part: of how many a turn looks whether there is room to keep for the rest.

That look is at all nodes, and at every pod where there is no room yet. Whoever makes pods that name a node, or end at
once, makes thousands of such gangs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from model.workload import WorkloadId
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.one_of_each import one_of_each

_MOST_A_TURN = 32


class BegunTurns:
    """All are looked at where they are few. Else namespaces have their turn one after the other, and in each those that
    come after the last that was looked at.
    """

    def __init__(self) -> None:
        self._last: dict[str, WorkloadId] = {}
        self._last_namespace = ""

    def take(self, begun: Iterable[Candidate]) -> Sequence[Candidate]:
        """Those of this turn; `begun` are all, by subject."""
        waiting = tuple(begun)
        if len(waiting) <= _MOST_A_TURN:
            self._last.clear()
            return waiting
        lines: dict[str, list[Candidate]] = {}
        for candidate in waiting:
            lines.setdefault(_namespace(candidate), []).append(candidate)
        self._last = {namespace: last for namespace, last in self._last.items() if namespace in lines}
        taken = tuple(islice(self._in_turn(lines), _MOST_A_TURN))
        for candidate in taken:
            self._last_namespace = _namespace(candidate)
            self._last[self._last_namespace] = candidate.subject
        return taken

    def _in_turn(self, lines: dict[str, list[Candidate]]) -> Iterable[Candidate]:
        """Namespaces one after the other, from the one after the last."""
        names = sorted(lines)
        names = [*(each for each in names if each > self._last_namespace), *names]
        return one_of_each(self._after(each, lines[each]) for each in dict.fromkeys(names))

    def _after(self, namespace: str, line: list[Candidate]) -> list[Candidate]:
        last = self._last.get(namespace)
        first = 0 if last is None else sum(candidate.subject <= last for candidate in line)
        return line[first:] + line[:first]


def _namespace(candidate: Candidate) -> str:
    return candidate.subject.keys[0].partition("/")[0]

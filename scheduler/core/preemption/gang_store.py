"""Running gangs as preemption must know them: arrays beside the residents', kept from one question to the next.

There are thousands of gangs and few of them change between two questions: only these are looked at again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence

import numpy as np

from model.workload import WorkloadId
from scheduler.core.ledger.residents import Residents
from scheduler.core.preemption.facts import GangFacts
from scheduler.core.snapshot.snapshot import Amounts, Mask


class GangStore(MutableMapping[WorkloadId, GangFacts]):
    """Gangs by subject. A gang that is not in it counts as pods without one."""

    def __init__(self, gangs: Mapping[WorkloadId, GangFacts] | None = None) -> None:
        self._gangs: dict[WorkloadId, GangFacts] = dict(gangs or {})
        self._changed: set[WorkloadId] = set()
        self._names: Sequence[WorkloadId] = ()
        self._seen = 0
        self._known: Mask = np.zeros(0, bool)
        self._surplus: Amounts = np.zeros(0, np.int64)

    def __getitem__(self, subject: WorkloadId) -> GangFacts:
        return self._gangs[subject]

    def __setitem__(self, subject: WorkloadId, facts: GangFacts) -> None:
        self._gangs[subject] = facts
        self._changed.add(subject)

    def __delitem__(self, subject: WorkloadId) -> None:
        del self._gangs[subject]
        self._changed.add(subject)

    def __iter__(self) -> Iterator[WorkloadId]:
        return iter(self._gangs)

    def __len__(self) -> int:
        return len(self._gangs)

    def arrays(self, residents: Residents) -> tuple[Mask, Amounts]:
        """By number of a subject: whether it is a gang, and its surplus; valid until the next call or change."""
        names = residents.subject_names
        if names is not self._names:
            self._names, self._seen = names, 0
        number, numbers = len(names), residents.subject_numbers
        if len(self._known) <= number:
            self._known, self._surplus = (
                np.resize(self._known, 2 * number + 1),
                np.resize(self._surplus, 2 * number + 1),
            )
        self._known[self._seen : number + 1], self._surplus[self._seen : number + 1] = False, 0
        fresh = number - self._seen
        asked = (
            self._gangs.keys() | self._changed if fresh > len(self._gangs) else {*self._changed, *names[self._seen :]}
        )
        self._read([numbers[name] for name in asked if name in numbers])
        self._changed.clear()
        self._seen = number
        size = max(number, 1)
        return self._known[:size], self._surplus[:size]

    def _read(self, numbers: Sequence[int]) -> None:
        """What is said of these subjects' numbers again."""
        if not numbers:
            return
        names, gangs, at = self._names, self._gangs, np.array(numbers, np.int64)
        found = [gangs.get(names[number]) for number in numbers]
        self._known[at] = [facts is not None for facts in found]
        self._surplus[at] = [0 if facts is None else facts.surplus for facts in found]


def stored(gangs: Mapping[WorkloadId, GangFacts]) -> GangStore:
    """The gangs as a store; one that is a store already keeps what it has worked out."""
    return gangs if isinstance(gangs, GangStore) else GangStore(gangs)

"""The cluster as one turn sees it: a snapshot, and what was placed, nominated or taken away on top of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from functools import lru_cache

import msgspec
import numpy as np

from model.cpubinding import CpuRequest
from model.pod.affinity import NOWHERE
from model.workload import WorkloadId
from scheduler.core.filters import fit
from scheduler.core.filters.obstacles import Obstacles, obstacles
from scheduler.core.filters.room_view import RoomView, need_of, plain
from scheduler.core.ledger.live_pod_index import LivePodIndex
from scheduler.core.load.arrays import LoadArrays
from scheduler.core.load.limit import LoadRoom, load_room
from scheduler.core.placement.class_views import Views
from scheduler.core.placement.cpu_table import CpuTable
from scheduler.core.placement.domains import Domains
from scheduler.core.placement.working_amounts import WorkingAmounts
from scheduler.core.scores.choice import NodeChoice, choice
from scheduler.core.scores.policy import PROFILES, SchedulerProfile, ScorePolicy, policy_for
from scheduler.core.scores.relative_scores import Compared, ScoredPod, cluster_scores
from scheduler.core.snapshot.assignment import Assignment, Nominated, Requester, net
from scheduler.core.snapshot.pod_index import PodIndex
from scheduler.core.snapshot.podclass import NO_INTERPOD, PodClass, PodTraits
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot

__all__ = ["Assignment", "Background", "Nominated", "ClassResult", "Requester", "WorkingSnapshot"]


class Background(msgspec.Struct, frozen=True, eq=False):
    """What is known besides nodes and nominations; without `live_index` there are no pods but those put in here."""

    live_index: LivePodIndex | None = None
    load: LoadArrays | None = None
    profiles: tuple[SchedulerProfile, ...] = PROFILES


class ClassResult(msgspec.Struct, frozen=True, eq=False):
    """What one class finds: `room` by row, not to be written to, and what took room away besides amounts and traits.

    `apart`: ask again after each member that is placed.
    """

    room: Amounts
    obstacles: Obstacles | None = None
    refused: tuple[fit.Refused, ...] = ()
    apart: bool = False


class _Held(msgspec.Struct, frozen=True, eq=False):
    """Nominations that count against one who asks; `key` tells them from others, None where there are none."""

    key: tuple[int, ...] | None
    amounts: Amounts | None
    assignments: tuple[Assignment, ...]


_CHOICES = 256
"""So many lone pods of a turn can tell their scores; in a burst of thousands nobody asks, and each would cost."""
_WORST = np.iinfo(np.int64).min
_NOTHING = _Held(None, None, ())
_SILENT = fit.FitReport(0, 0)


class WorkingSnapshot:
    """Rows and columns are the snapshot's; `free` (node × resource) is what is left, nominations not counted.

    `following` is that of the turn before: what it worked out for nodes that are the same is used again. `cpus` says
    who has which whole CPUs.
    """

    def __init__(
        self,
        snapshot: ClusterSnapshot,
        nominated: Iterable[Nominated] = (),
        background: Background | None = None,
        following: WorkingSnapshot | None = None,
    ) -> None:
        self.snapshot = snapshot
        self.nominated = tuple(nominated)
        self._kept_for = frozenset(held.subject for held in self.nominated)
        self.background = background = background or Background()
        load = background.load.copy() if background.load is not None else None
        self._state = WorkingAmounts(snapshot, load)
        self.cpus = CpuTable(snapshot, background.live_index.ledger if background.live_index is not None else None)
        self._views = following.hand_over(self._state, self.nominated) if following else Views(self._state)
        self._assigned: list[tuple[Sequence[Assignment], int]] = []
        self._held: dict[tuple[int, ...], _Held] = {}
        self._held_by: dict[tuple[WorkloadId | None, int, bool], _Held] = {}
        self._pod_index: PodIndex | None = None
        self.silent = False
        self._choices_left = _CHOICES
        if _with_terms(self.nominated) or (background.live_index is not None and background.live_index.live):
            self._pod_index = self._gather()

    @property
    def free(self) -> Amounts:
        """Node × resource that is left, nominations not counted; not to be written to."""
        return self._state.free

    @property
    def indexed(self) -> bool:
        """Whether anybody has terms about other pods, or asked who is where."""
        return self._pod_index is not None

    @property
    def pod_index(self) -> PodIndex:
        """Pods by node, those placed in this working snapshot included, nominations not."""
        if self._pod_index is None:
            self._pod_index = self._gather()
        return self._pod_index

    def room(self, pod_class: PodClass, pod_traits: PodTraits, requester: Requester) -> Amounts:
        """How many more pods of the class each row takes, all filters considered.

        Not to be written to, and valid until the working snapshot next changes; so is what `free` and `outlook` return.
        """
        return self.outlook(pod_class, pod_traits, requester).room

    def outlook(self, pod_class: PodClass, pod_traits: PodTraits, requester: Requester) -> ClassResult:
        """As `room`, with what is in the way."""
        held = self._held_against(requester)
        room = self._view(pod_class, held).room
        limit = load_room(self._state.load, self.snapshot, pod_class)
        if limit is not None:
            room = np.where(limit.reason_of < 0, np.minimum(room, limit.most), 0)
        cpus = self.cpus.room(pod_class.cpus) if pod_class.cpus is not None else None
        if cpus is not None:
            room = np.minimum(room, cpus.most)
        found = self._obstacles(pod_class, pod_traits, held)
        for each in found:
            room = np.where(each.reason_of < 0, room if each.most is None else np.minimum(room, each.most), 0)
        refused = tuple(pair for each in (limit, *found[1:]) if each is not None for pair in _refused(each))
        refused += cpus.refused if cpus is not None else ()
        return ClassResult(room, found[0] if found else None, refused, any(each.apart for each in found))

    def report(self, pod_class: PodClass, pod_traits: PodTraits, requester: Requester) -> fit.FitReport:
        """Why which number of nodes takes no more pod of the class."""
        if self.silent:
            return _SILENT
        return self.report_of(self.outlook(pod_class, pod_traits, requester), pod_class, requester)

    def report_of(
        self, outlook: ClassResult, pod_class: PodClass, requester: Requester, extra: Sequence[fit.Refused] = ()
    ) -> fit.FitReport:
        """As `report`, where the outlook is known; `extra` are refusals after all filters."""
        if self.silent:
            return _SILENT
        held = self._held_against(requester)
        bare = (outlook.obstacles is None or not outlook.obstacles.reasons) and not outlook.refused and not extra
        if bare and plain(self.snapshot.resources, pod_class):
            return self._view(pod_class, held).report(self.free, held.amounts)
        free, refused = self.free_for(requester), (*outlook.refused, *extra)
        return fit.report(self.snapshot, free, pod_class, outlook.obstacles, refused)

    def best(self, asker: ScoredPod, outlook: ClassResult) -> int:
        """The row with room that scores best, the first of equals; −1 where no row has room."""
        return self._best(asker, outlook)[0]

    def choose(self, asker: ScoredPod, outlook: ClassResult) -> tuple[int, NodeChoice | None]:
        """As `best`, with what can tell why it was not the next best: for the first pods of a turn, not in a trial."""
        row, total, compared = self._best(asker, outlook)
        if row < 0 or self.silent or not self._choices_left:
            return row, None
        self._choices_left -= 1
        total[row] = _WORST
        second = int(total.argmax())
        rows = np.array([row, second] if total[second] != _WORST else [row])
        return row, choice(self._views.ask(asker.pod_class, asker.policy), compared, rows)

    def _best(self, asker: ScoredPod, outlook: ClassResult) -> tuple[int, Amounts, Compared | None]:
        """The row, the scores of all rows that have room, and those that compare them."""
        feasible = outlook.room > 0
        if not feasible.any():
            return -1, outlook.room, None
        scores = self._views.scores(asker.pod_class, asker.policy)
        pod_index = self.pod_index if self._looks_around(asker.pod_class) else _nobody(len(feasible))
        compared = cluster_scores(pod_index, self.snapshot.traits, asker, feasible)
        total = np.where(feasible, scores if compared is None else scores + compared.total, _WORST)
        return int(total.argmax()), total, compared

    def policy(self, profile: str) -> ScorePolicy:
        """How pods of a scheduler name are scored."""
        return policy_for(self.background.profiles, profile)

    def domains(self, keys: tuple[str, ...]) -> Domains:
        """The domains of nested node labels, widest first."""
        return self._views.domains(keys)

    def members_by_node(self, subject: WorkloadId) -> Amounts:
        """By row, how many members of a gang are charged there, those placed in this working snapshot not included."""
        numbers = np.zeros(len(self.snapshot.names), np.int64)
        live_index = self.background.live_index
        for name, number in (live_index.ledger.members_by_node(subject) if live_index else {}).items():
            if name in self.snapshot.rows:
                numbers[self.snapshot.rows[name]] = number
        return numbers

    def free_for(self, requester: Requester) -> Amounts:
        """What is left for one who asks: others' nominations of equal or higher priority count as used."""
        held = self._held_against(requester).amounts
        return self.free if held is None else np.asarray(self.free - held)

    def nominate(self, nominated: Iterable[Nominated]) -> None:
        """Keep this room from here on, and what was kept no longer."""
        self.nominated = tuple(nominated)
        self._kept_for = frozenset(held.subject for held in self.nominated)
        self._held.clear()
        self._held_by.clear()
        self._views.drop_held()
        if self._pod_index is None and _with_terms(self.nominated):
            self._pod_index = self._gather()

    def keeps_for(self, subject: WorkloadId) -> bool:
        """Whether room is kept for a workload."""
        return subject in self._kept_for

    def put(self, assignments: Iterable[Assignment]) -> None:
        """These pods are there from here on."""
        self._change(tuple(assignments), 1)

    def remove(self, assignments: Iterable[Assignment]) -> None:
        """These pods are gone from here on."""
        self._change(tuple(assignments), -1)

    def vacate(
        self,
        rows: Amounts,
        classes: Sequence[PodClass],
        amounts: tuple[Amounts, Amounts],
        relevant: Iterable[Assignment],
    ) -> None:
        """As `remove` for many: one pod on each of `rows`, of `classes`, is gone with its requested and scored amounts.

        `relevant` are those of them that anybody's terms who is placed here later may see.
        """
        self._meet(tuple(relevant), -1)
        self._views.touch(self._state.give_back(rows, classes, *amounts))

    def what_if(self, *, silent: bool = False) -> WorkingSnapshot:
        """An independent copy, to try something; a `silent` one gives empty reports, where assignments alone matter."""
        other = copy(self)
        other.silent = silent
        other._state = self._state.copy()
        other.cpus = self.cpus.copy()
        other._views = self._views.alike(other._state)
        other._assigned = list(self._assigned)
        other._held, other._held_by = dict(self._held), dict(self._held_by)
        other._pod_index = self._pod_index.copy() if self._pod_index is not None else None
        return other

    def hand_over(self, state: WorkingAmounts, nominated: tuple[Nominated, ...]) -> Views:
        """What this working snapshot worked out, for the one after it; this one must not be used any more."""
        if nominated != self.nominated:
            self._views.drop_held()
        self._views.renew(state)
        return self._views

    def _change(self, assignments: Sequence[Assignment], count: int) -> None:
        self._meet(assignments, count)
        for assignment in assignments:
            if assignment.pod_class.cpus is not None:
                self._bind(assignment, assignment.pod_class.cpus, count)
        first = assignments[0].pod_class if assignments else None
        if first is not None and all(assignment.pod_class is first for assignment in assignments):
            self._views.touch(self._state.charge(first, [assignment.row for assignment in assignments], count))
            return
        groups: dict[PodClass, list[int]] = {}
        for assignment in assignments:
            groups.setdefault(assignment.pod_class, []).append(assignment.row)
        for pod_class, rows in groups.items():
            self._views.touch(self._state.charge(pod_class, rows, count))

    def _bind(self, assignment: Assignment, request: CpuRequest, count: int) -> None:
        """The pod has CPUs of its own, or gives them back."""
        if count > 0:
            self.cpus.put(assignment.row, assignment.uid, request)
        else:
            self.cpus.remove(assignment.row, assignment.uid)

    def _meet(self, assignments: Sequence[Assignment], count: int) -> None:
        """Others' terms see these, or do not any more."""
        if self._pod_index is not None:
            for assignment in assignments:
                self._pod_index.put(assignment.pod_traits, assignment.row, count)
            return
        self._assigned.append((assignments, count))
        if any(
            assignment.pod_traits.affinity is not NOWHERE and assignment.pod_traits.affinity != NOWHERE
            for assignment in assignments
        ):
            self._pod_index = self._gather()

    def _view(self, pod_class: PodClass, held: _Held) -> RoomView:
        return self._views.room(pod_class, held.key, held.amounts)

    def _obstacles(self, pod_class: PodClass, pod_traits: PodTraits, held: _Held) -> list[Obstacles]:
        """What other pods keep from where: with those nominated and, as kube-scheduler asks twice, without them."""
        if not self._looks_around(pod_class):
            return []
        traits = self.snapshot.traits
        found = [obstacles(self.pod_index, traits, pod_class, pod_traits)]
        if held.assignments:
            indexed = self.pod_index.copy()
            for assignment in held.assignments:
                indexed.put(assignment.pod_traits, assignment.row)
            found.insert(0, obstacles(indexed, traits, pod_class, pod_traits))
        return [each for each in found if each.reasons or each.apart or each.most is not None]

    def _looks_around(self, pod_class: PodClass) -> bool:
        """Whether other pods matter to the class; once anybody has terms they may matter to everybody."""
        return self._pod_index is not None or (
            pod_class.interpod is not NO_INTERPOD and pod_class.interpod != NO_INTERPOD
        )

    def _gather(self) -> PodIndex:
        """Everybody: the ledger's pods, and those put here that it does not know of."""
        live_index = self.background.live_index
        pod_index = live_index.pod_index(self.snapshot) if live_index else PodIndex(len(self.snapshot.names))
        for assignment, count in net(self._assigned):
            known = live_index is not None and live_index.ledger.charge(assignment.uid) is not None
            number = count - 1 if known and count > 0 else count
            if number:
                pod_index.put(assignment.pod_traits, assignment.row, number)
        return pod_index

    def _held_against(self, requester: Requester) -> _Held:
        if not self.nominated:
            return _NOTHING
        own = requester.subject if requester.subject in self._kept_for else None
        asks = own, requester.priority, requester.online
        found = self._held_by.get(asks)
        if found is None:
            found = self._held_by[asks] = self._that_binds(requester)
        return found

    def _that_binds(self, requester: Requester) -> _Held:
        key = tuple(number for number, held in enumerate(self.nominated) if held.binds(requester))
        if not key:
            return _NOTHING
        if key not in self._held:
            assignments = tuple(assignment for number in key for assignment in self.nominated[number].assignments)
            self._held[key] = _Held(key, self._taken(assignments), assignments)
        return self._held[key]

    def _taken(self, assignments: Iterable[Assignment]) -> Amounts:
        taken = np.zeros_like(self.free)
        alike = Counter([(assignment.row, assignment.pod_class) for assignment in assignments])
        for (row, pod_class), number in alike.items():
            taken[row] += number * need_of(self.snapshot.resources, pod_class).used
        return taken


def _with_terms(nominated: Iterable[Nominated]) -> bool:
    affinities = (assignment.pod_traits.affinity for held in nominated for assignment in held.assignments)
    return any(affinity is not NOWHERE and affinity != NOWHERE for affinity in affinities)


def _refused(limit: LoadRoom | Obstacles) -> list[fit.Refused]:
    """Each reason with its rows."""
    return [(np.asarray(limit.reason_of == index), reason) for index, reason in enumerate(limit.reasons)]


@lru_cache(maxsize=8)
def _nobody(size: int) -> PodIndex:
    return PodIndex(size)

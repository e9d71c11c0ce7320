"""Pods gone in thought: their room on every row at once, and only those in the pod index that matter to the preemptor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from preemption_builders import Arena, node, resident, waiting
from scheduler_builders import candidate

from model.pod.affinity import Affinity, HostPort, PodTerm, SpreadConstraint
from model.selector import Operator, Requirement, Selector
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import WorkingSnapshot
from scheduler.core.preemption.terminating import FreedRoom, KinRelevance, vacate
from scheduler.core.snapshot.podclass import PodTraits

WEB = Selector((Requirement("app", Operator.IN, ("web",)),))
AWAY = Affinity(anti_pods=(PodTerm("zone", WEB),))
SEEN, OTHER = PodTraits("default", (("app", "web"),)), PodTraits("default", (("app", "db"),))
KEEPS_AWAY, ON_A_PORT = PodTraits("default", affinity=AWAY), PodTraits("default", ports=(HostPort(80),))


def _job(**more: Any) -> Candidate:
    return candidate([waiting(**more)])


@pytest.mark.parametrize(
    ("job", "seen"),
    [
        ({}, []),
        ({"affinity": AWAY}, [SEEN, KEEPS_AWAY, ON_A_PORT]),
        ({"affinity": Affinity(pods=(PodTerm("zone", WEB),))}, [SEEN, KEEPS_AWAY, ON_A_PORT]),
        ({"affinity": Affinity(pods=(PodTerm("zone", None),))}, [KEEPS_AWAY, ON_A_PORT]),
        ({"spread": (SpreadConstraint("zone", 1, hard=True, selector=WEB),)}, [SEEN, KEEPS_AWAY, ON_A_PORT]),
        ({"host_ports": (HostPort(80),)}, [KEEPS_AWAY, ON_A_PORT]),
    ],
    ids=["none", "anti-affinity", "affinity", "a term that matches nobody", "spread", "ports"],
)
def test_who_matters_beyond_room(job: dict[str, Any], seen: list[PodTraits]) -> None:
    """Those whom the members' own terms name, and those who have terms or ports themselves."""
    relevant = KinRelevance(Arena([node()]).working(), _job(**job))
    assert relevant.anybody == bool(seen)
    assert [pod_traits for pod_traits in (SEEN, OTHER, KEEPS_AWAY, ON_A_PORT) if relevant(pod_traits)] == seen
    assert [pod_traits for pod_traits in (SEEN, OTHER, KEEPS_AWAY, ON_A_PORT) if relevant(pod_traits)] == seen, (
        "the second time too"
    )


def test_terms_of_residents_matter_to_one_who_has_none() -> None:
    working = Arena([node()], [resident("shy", cpu=1, affinity=AWAY)]).working()
    assert working.pod_index.objections(SEEN)
    relevant = KinRelevance(working, _job())
    assert relevant(KEEPS_AWAY)
    assert not relevant(OTHER)


def _free(working: WorkingSnapshot, job: Candidate) -> list[int]:
    column = working.snapshot.resources.index("cpu")
    return [int(amount) for amount in working.free_for(job.requester)[:, column]]


def test_room_comes_back_on_every_row_and_only_in_thought() -> None:
    arena = Arena(
        [node("n1"), node("n2"), node("n3")], [resident("a", "n1", 1), resident("b", "n1", 2), resident("c", "n3", 4)]
    )
    working, residents, job = arena.working(), arena.residents(), _job()
    later = working.what_if()
    relevant = KinRelevance(later, job)
    vacate(later, residents, np.array([residents.slot_of[f"uid-{name}"] for name in "abc"]), relevant)
    assert _free(later, job) == [4000, 4000, 4000]
    assert _free(working, job) == [1000, 4000, 0]
    assert int(later.room(job.classes[0], job.member_traits[0][0], job.requester).sum()) == 3


def test_nobody_leaves() -> None:
    arena = Arena([node()], [resident("a", cpu=1)])
    working, job = arena.working(), _job()
    vacate(working, arena.residents(), np.zeros(0, np.int64), KinRelevance(working, job))
    assert _free(working, job) == [3000]


def test_one_who_is_heeded_leaves_the_pod_index_too() -> None:
    """There is room beside it; it is in the way by its port alone."""
    arena = Arena([node()], [resident("a", cpu=1, host_ports=(HostPort(80),))])
    working, residents, job = arena.working(), arena.residents(), _job(cpu=1, host_ports=(HostPort(80),))
    assert not isinstance(place(working.what_if(), job), Placed)
    vacate(working, residents, np.array([residents.slot_of["uid-a"]]), KinRelevance(working, job))
    assert isinstance(place(working, job), Placed)


class _Seats:
    """A member of 3 CPUs on the only node, of 10, beside residents of 1, 2 and 3 CPUs: 1 is left."""

    def __init__(self) -> None:
        arena = Arena([node(cpu=10)], [resident("a", cpu=1), resident("b", cpu=2), resident("c", cpu=3)])
        working, self.residents, job = arena.working(), arena.residents(), _job()
        placed = place(working.what_if(), job)
        assert isinstance(placed, Placed)
        self.beside = FreedRoom(working, job, placed, self.residents.class_requests)

    def line(self, name: str) -> int:
        return int(self.residents.classes[self.residents.slot_of[f"uid-{name}"]])


def test_put_back_while_the_assignments_keep_their_room() -> None:
    """c makes 4 of the 1 that is left; twins of b and a leave 1 of that, enough for a once more and then for nobody."""
    assignments = _Seats()
    assert not assignments.beside.put_back([(0, assignments.line("b"))])
    assignments.beside.leaves(0, assignments.line("c"))
    assert assignments.beside.put_back([(0, assignments.line("b"))])
    assert assignments.beside.put_back([(0, assignments.line("a"))])
    assert not assignments.beside.put_back([(0, assignments.line("b"))])
    assert assignments.beside.put_back([(0, assignments.line("a"))])
    assert not assignments.beside.put_back([(0, assignments.line("a"))])


def test_put_back_all_or_none() -> None:
    assignments = _Seats()
    assert not assignments.beside.put_back([(0, assignments.line("a")), (0, assignments.line("a"))])
    assert assignments.beside.put_back([(0, assignments.line("a"))])


def test_other_rows_are_nobodys_concern() -> None:
    assignments = _Seats()
    assignments.beside.leaves(7, assignments.line("c"))
    assert assignments.beside.put_back([(7, assignments.line("c")), (7, assignments.line("c"))])
    assert not assignments.beside.put_back([(0, assignments.line("b")), (7, assignments.line("a"))])

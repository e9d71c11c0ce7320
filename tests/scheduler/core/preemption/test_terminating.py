"""Pods gone in thought: their room on every row at once, and only those in the crowd whom the preemptor heeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from preemption_builders import Arena, node, resident, waiting
from scheduler_builders import candidate

from model.affinity import Affinity, HostPort, PodTerm, SpreadConstraint
from model.selector import Operator, Requirement, Selector
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.picture.podclass import Kin
from scheduler.core.placement.place import Placed, place
from scheduler.core.placement.working_snapshot import Scene
from scheduler.core.preemption.terminating import Beside, Heeds, vacate

WEB = Selector((Requirement("app", Operator.IN, ("web",)),))
AWAY = Affinity(anti_pods=(PodTerm("zone", WEB),))
SEEN, OTHER = Kin("default", (("app", "web"),)), Kin("default", (("app", "db"),))
KEEPS_AWAY, ON_A_PORT = Kin("default", affinity=AWAY), Kin("default", ports=(HostPort(80),))


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
def test_who_matters_beyond_room(job: dict[str, Any], seen: list[Kin]) -> None:
    """Those whom the members' own terms name, and those who have terms or ports themselves."""
    heeds = Heeds(Arena([node()]).scene(), _job(**job))
    assert heeds.anybody == bool(seen)
    assert [kin for kin in (SEEN, OTHER, KEEPS_AWAY, ON_A_PORT) if heeds(kin)] == seen
    assert [kin for kin in (SEEN, OTHER, KEEPS_AWAY, ON_A_PORT) if heeds(kin)] == seen, "the second time too"


def test_terms_of_residents_matter_to_one_who_has_none() -> None:
    scene = Arena([node()], [resident("shy", cpu=1, affinity=AWAY)]).scene()
    assert scene.crowd.objections(SEEN)
    heeds = Heeds(scene, _job())
    assert heeds(KEEPS_AWAY)
    assert not heeds(OTHER)


def _free(scene: Scene, job: Candidate) -> list[int]:
    column = scene.snapshot.resources.index("cpu")
    return [int(amount) for amount in scene.free_for(job.standing)[:, column]]


def test_room_comes_back_on_every_row_and_only_in_thought() -> None:
    arena = Arena(
        [node("n1"), node("n2"), node("n3")], [resident("a", "n1", 1), resident("b", "n1", 2), resident("c", "n3", 4)]
    )
    scene, residents, job = arena.scene(), arena.residents(), _job()
    later = scene.what_if()
    heeds = Heeds(later, job)
    vacate(later, residents, np.array([residents.slot_of[f"uid-{name}"] for name in "abc"]), heeds)
    assert _free(later, job) == [4000, 4000, 4000]
    assert _free(scene, job) == [1000, 4000, 0]
    assert int(later.room(job.classes[0], job.kins[0][0], job.standing).sum()) == 3


def test_nobody_leaves() -> None:
    arena = Arena([node()], [resident("a", cpu=1)])
    scene, job = arena.scene(), _job()
    vacate(scene, arena.residents(), np.zeros(0, np.int64), Heeds(scene, job))
    assert _free(scene, job) == [3000]


def test_one_who_is_heeded_leaves_the_crowd_too() -> None:
    """There is room beside it; it is in the way by its port alone."""
    arena = Arena([node()], [resident("a", cpu=1, host_ports=(HostPort(80),))])
    scene, residents, job = arena.scene(), arena.residents(), _job(cpu=1, host_ports=(HostPort(80),))
    assert not isinstance(place(scene.what_if(), job), Placed)
    vacate(scene, residents, np.array([residents.slot_of["uid-a"]]), Heeds(scene, job))
    assert isinstance(place(scene, job), Placed)


class _Seats:
    """A member of 3 CPUs on the only node, of 10, beside residents of 1, 2 and 3 CPUs: 1 is left."""

    def __init__(self) -> None:
        arena = Arena([node(cpu=10)], [resident("a", cpu=1), resident("b", cpu=2), resident("c", cpu=3)])
        scene, self.residents, job = arena.scene(), arena.residents(), _job()
        placed = place(scene.what_if(), job)
        assert isinstance(placed, Placed)
        self.beside = Beside(scene, job, placed, self.residents.class_requests)

    def line(self, name: str) -> int:
        return int(self.residents.classes[self.residents.slot_of[f"uid-{name}"]])


def test_put_back_while_the_seats_keep_their_room() -> None:
    """c makes 4 of the 1 that is left; twins of b and a leave 1 of that, enough for a once more and then for nobody."""
    seats = _Seats()
    assert not seats.beside.put_back([(0, seats.line("b"))])
    seats.beside.leaves(0, seats.line("c"))
    assert seats.beside.put_back([(0, seats.line("b"))])
    assert seats.beside.put_back([(0, seats.line("a"))])
    assert not seats.beside.put_back([(0, seats.line("b"))])
    assert seats.beside.put_back([(0, seats.line("a"))])
    assert not seats.beside.put_back([(0, seats.line("a"))])


def test_put_back_all_or_none() -> None:
    seats = _Seats()
    assert not seats.beside.put_back([(0, seats.line("a")), (0, seats.line("a"))])
    assert seats.beside.put_back([(0, seats.line("a"))])


def test_other_rows_are_nobodys_concern() -> None:
    seats = _Seats()
    seats.beside.leaves(7, seats.line("c"))
    assert seats.beside.put_back([(7, seats.line("c")), (7, seats.line("c"))])
    assert not seats.beside.put_back([(0, seats.line("b")), (7, seats.line("a"))])

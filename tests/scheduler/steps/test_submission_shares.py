"""In which order the LocalQueues of one queue are served by what they used over time."""

from __future__ import annotations

import msgspec
import pytest
from kueue_world import GPU, cluster_queue, flavor, gpu_node, gpu_pod, local_queue, namespace
from scheduler_fakes import World

from model.queue import Cell
from scheduler.core.gangs.assembly import Candidate
from scheduler.core.queueing.order import Ranking
from scheduler.core.queueing.queue_refusal import amounts_of
from scheduler.steps.submission_shares import SubmissionShares

TOTALS: dict[Cell, int] = {("", GPU): 16, ("", "pods"): 220}


def world(weight: int = 1) -> World:
    """Waiting: three of `a`, the oldest, and two of `b`; 4 GPUs run that came by `a`."""
    found = World().see(
        namespace(),
        flavor(),
        gpu_node("a0"),
        cluster_queue("one", stopPolicy="Hold"),
        local_queue("a", "one", fairSharing={"weight": weight}),
        local_queue("b", "one"),
        gpu_pod("running", "a", 4, node="a0"),
    )
    found.see(*(gpu_pod(f"a{n}", "a", 2, created=n) for n in range(3)))
    found.see(*(gpu_pod(f"b{n}", "b", 2, created=10 + n) for n in range(2)))
    found.turn()
    return found


def arranged(found: World, *looks: float) -> list[str]:
    shares = SubmissionShares(found.cache, 100.0, amounts_of)
    for now in looks:
        shares.observe(now)
    ranking = Ranking(0.0)

    def key(candidate: Candidate) -> tuple[bool, int, bool, float, str]:
        return ranking.within_queue(candidate)

    heads = sorted(
        ((key(each), each) for each in found.cycle.backlog.candidates), reverse=True, key=lambda head: head[0]
    )
    return [candidate.subject.name.rpartition("/")[2] for _, candidate in reversed(shares.arranged(heads, TOTALS))]


CASES: dict[str, tuple[int, list[str]]] = {
    "whoever used nothing goes first, and then in turn": (1, ["b0", "b1", "a0", "a1", "a2"]),
    "by their weights": (8, ["b0", "a0", "a1", "a2", "b1"]),
}


@pytest.mark.parametrize(("weight", "wanted"), CASES.values(), ids=CASES)
def test_order(weight: int, wanted: list[str]) -> None:
    """What goes before counts as used, so that nobody gets all at once; within a LocalQueue the older goes first."""
    assert arranged(world(weight), 0.0) == wanted


def test_what_was_used_long_ago_counts_less() -> None:
    """After many half-lives without use both begin as equals."""
    found = world()
    shares = SubmissionShares(found.cache, 100.0, amounts_of)
    shares.observe(0.0)
    found.gone(gpu_pod("running", "a", 4, node="a0"))
    found.turn()
    shares.observe(10.0)
    shares.observe(10_000.0)
    heads = sorted(
        ((Ranking(0.0).within_queue(each), each) for each in found.cycle.backlog.candidates),
        reverse=True,
        key=lambda head: head[0],
    )
    order = [each.subject.name.rpartition("/")[2] for _, each in reversed(shares.arranged(heads, TOTALS))]
    assert order == ["a0", "b0", "a1", "b1", "a2"]


def test_one_local_queue_alone_keeps_its_order() -> None:
    found = world()
    found.gone(*(gpu_pod(f"b{n}", "b", 2) for n in range(2)))
    found.turn()
    assert arranged(found, 0.0) == ["a0", "a1", "a2"]


def test_who_leads_next_goes_on_from_what_was_written() -> None:
    """`b` had used much an hour before, by its status: it is behind `a`, which uses something now."""
    found = world()
    assert arranged(found, 0.0)[0] == "b0"
    own = {"consumedResources": {GPU: "64"}, "lastUpdate": "1970-01-01T00:00:00Z"}
    told = local_queue("b", "one")
    status = {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": own}}
    found.see(msgspec.structs.replace(told, status=status)).turn()
    assert arranged(found, 0.0)[0] == "a0"
    assert arranged(found, 1000.0)[0] == "b0"

"""What agents report, and what they are told."""

from __future__ import annotations

import asyncio

import pytest
from scheduler_builders import SCHEDULER, raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text
from model.decision import Decision, Term, Unit
from model.pod.colocation import StandingNotice
from model.reason import Reason
from model.report import CheckpointSaved, EvictionCost, NodeReport, Usage
from model.workload import WorkloadId
from scheduler.cache.cluster_cache import ClusterCache
from scheduler.core.gangs.minimum import GangPart
from scheduler.link.node_reports import NodeReports

BE = {"koordinator.sh/qosClass": "BE"}


def lends(amount: int) -> NodeReport:
    terms = (Term("capacity", amount),)
    decision = Decision("node/n1", "batch-cpu", amount, Unit.MILLI_CPU, Reason.COMPUTED, terms)
    return NodeReport(1.0, Usage(), Usage(), Usage(), Usage(), (decision,))


def node_reports_of(world: World) -> NodeReports:
    return NodeReports(world.cache, world.history, world.clock)


def test_costs() -> None:
    """Best-effort pods of the node by uid: their gang, how many members it has to spare, how old the checkpoint is,
    which is that of the job.
    """
    world = World().see(raw_node(), raw_group(minimum=2))
    world.see(*(raw_pod(f"w{i}", group="train", node_name="n1", labels=BE) for i in range(3)))
    world.see(raw_pod("lone", node_name="n1", labels=BE), raw_pod("done", node_name="n1", labels=BE, phase="Failed"))
    world.turn()
    node_reports = node_reports_of(world)
    node_reports.checkpoints([("n1", CheckpointSaved("default", "w1", "uid-w1", world.clock.now - 60.0))])
    node_reports.checkpoints([("n1", CheckpointSaved("default", "unknown", "uid-unknown", 1.0))])
    assert node_reports.costs("n1") == (
        EvictionCost("uid-lone"),
        EvictionCost("uid-w0", "default/train", 1, 60.0),
        EvictionCost("uid-w1", "default/train", 1, 60.0),
        EvictionCost("uid-w2", "default/train", 1, 60.0),
    )
    assert node_reports.costs("n2") == ()


def test_a_checkpoint_is_told_by_the_node_of_its_pod() -> None:
    """Another's agent cannot make a pod look cheap to lose, nor can a clock that is ahead for long."""
    world = World().see(raw_node(), *(raw_pod(f"p{i}", node_name=f"n{i}", labels=BE) for i in (1, 2)))
    world.turn()
    node_reports, now = node_reports_of(world), world.clock.now
    node_reports.checkpoints([("n2", CheckpointSaved("default", "p1", "uid-p1", now))])
    node_reports.checkpoints([("n2", CheckpointSaved("default", "p2", "uid-p2", now + 1e9))])
    assert node_reports.costs("n1") == (EvictionCost("uid-p1"),)
    assert node_reports.costs("n2") == (EvictionCost("uid-p2", checkpoint_age_seconds=0.0),)


def test_work_is_lost_since_the_moment_of_the_saved_state() -> None:
    """A save takes its time, in which training goes on."""
    world = World().see(raw_node(), raw_pod("p", node_name="n1", labels=BE))
    world.turn()
    node_reports, now = node_reports_of(world), world.clock.now
    node_reports.checkpoints([("n1", CheckpointSaved("default", "p", "uid-p", now - 5, begun_seconds=now - 40))])
    assert node_reports.costs("n1") == (EvictionCost("uid-p", checkpoint_age_seconds=40.0),)


def test_a_report_wakes_nobody() -> None:
    """Placement reads the node's allocatable alone, so a report that lends more costs no attempt and no back-off."""
    world = World().see(raw_node(batch_cpu="100"), raw_pod())
    world.turn()
    node_reports_of(world).report("n1", lends(9000))
    assert world.turn(after=20.0).decisions == []
    world.see(raw_node(batch_cpu="900")).turn()
    assert world.binder.assigned == {"p1": "n1"}


def test_reports_do_not_outlive_their_node() -> None:
    """A report stays while its node or its link does."""
    world = World().see(raw_node())
    world.turn()
    node_reports = node_reports_of(world)
    for name in ("n1", "unknown"):
        node_reports.connected(name)
        node_reports.report(name, lends(1))
    assert node_reports.reports.keys() == {"n1", "unknown"}
    for name in ("n1", "unknown"):
        node_reports.disconnected(name)
    assert node_reports.reports.keys() == {"n1"}


@pytest.mark.parametrize(
    ("subject", "kept"),
    [
        ("node/n1", "node/n1"),
        ("cgroup/kubepods", "node/n1/cgroup/kubepods"),
        ("node/n2", ""),
        ("gang/default/train", ""),
        ("pod/default/p1", ""),
        ("node/n1/../n2", ""),
    ],
)
def test_an_agent_speaks_of_its_own_node(subject: str, kept: str) -> None:
    """Its node and cgroups, tagged with the node; anything else it says is not passed on."""

    async def body() -> list[str]:
        world = World()
        said = Decision(subject, "batch-cpu", 1, Unit.MILLI_CPU, Reason.COMPUTED, (Term("capacity", 1),))
        node_reports_of(world).decision("n1", said)
        world.history.record(Decision("end", "x", 0, Unit.PODS, Reason.COMPUTED, ()))
        watching = world.history.watch("", 9)
        seen = [(await anext(watching)).subject]
        while seen[-1] != "end":
            seen.append((await anext(watching)).subject)
        await watching.aclose()
        return seen[:-1]

    assert asyncio.run(body()) == ([kept] if kept else [])


class CountingCache(ClusterCache):
    """Counts how often a roster is sorted out."""

    def __init__(self) -> None:
        super().__init__([SCHEDULER])
        self.sorted = 0

    def parts(self, subject: WorkloadId) -> tuple[GangPart, ...]:
        self.sorted += 1
        return super().parts(subject)


def test_a_gang_is_sorted_out_once_a_turn() -> None:
    """However many nodes ask; the next turn's news is in the next answer."""
    cache = CountingCache()
    world = World(cache=cache).see(raw_group(minimum=1))
    world.see(*(raw_pod(f"w{i}", group="train", node_name=f"n{i}", labels=BE) for i in range(3)))
    world.turn()
    node_reports, before = node_reports_of(world), cache.sorted
    surplus = [cost.members_above_minimum for i in range(3) for cost in node_reports.costs(f"n{i}")]
    assert (surplus, cache.sorted - before) == ([2, 2, 2], 1)
    world.gone(raw_pod("w2", group="train", node_name="n2", labels=BE)).turn()
    assert [cost.members_above_minimum for cost in node_reports.costs("n0")] == [1]


def test_checkpoints_are_told_once_with_their_reason() -> None:
    """On notice where the state is of no earlier moment than that."""
    world, saves = World().see(raw_node()), list[tuple[str, str, str]]()
    told = StandingNotice(world.clock.now - 10.0, world.clock.now + 60.0, "PreemptionByScheduler", "pod/default/hp")
    world.see(
        raw_pod("quiet", node_name="n1"),
        raw_pod("told", node_name="n1", annotations={ANNOTATION_STANDING_NOTICE: notice_text(told)}),
    ).turn()
    reports = NodeReports(world.cache, world.history, world.clock, lambda *said: saves.append(said))
    for name, ago in (("quiet", 5.0), ("quiet", 5.0), ("told", 20.0), ("told", 5.0), ("unknown", 1.0)):
        reports.checkpoints([("n1", CheckpointSaved("default", name, f"uid-{name}", world.clock.now - ago))])
    assert saves == [
        ("default/quiet", "interval", "complete"),
        ("default/told", "interval", "complete"),
        ("default/told", "notice", "complete"),
    ]


def test_a_gang_is_gone_through_once_for_all_who_tell() -> None:
    """However many of its members tell at once, and not at all for what is known; it may have thousands of members."""
    cache, names = CountingCache(), [f"w{i}" for i in range(20)]
    world = World(cache=cache).see(raw_node(), raw_group(minimum=1))
    world.see(*(raw_pod(name, group="train", node_name="n1", labels=BE) for name in names)).turn()
    node_reports, now = node_reports_of(world), world.clock.now
    told = [("n1", CheckpointSaved("default", name, f"uid-{name}", now - 60.0)) for name in names[1:]]
    before = cache.sorted
    node_reports.checkpoints(told)
    assert cache.saved == dict.fromkeys((f"uid-{name}" for name in names), now - 60.0)
    assert cache.sorted - before == 1
    node_reports.checkpoints(told)
    assert cache.sorted - before == 1

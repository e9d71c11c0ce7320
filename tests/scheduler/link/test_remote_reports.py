"""What waits in the link process is the newest word on each node, however long nobody takes it."""

from __future__ import annotations

import asyncio

from model.decision import Decision, Unit
from model.reason import Reason
from model.report import CheckpointSaved, EvictionCost, NodeReport, Usage
from scheduler.link.frames import FromLinkProcess
from scheduler.link.remote_reports import RemoteNodeReports


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def report(cpu: int) -> NodeReport:
    return NodeReport(5.0, Usage(cpu), Usage(), Usage(), Usage())


def decision(value: int) -> Decision:
    return Decision("node/n", "batch-cpu", 0, Unit.MILLI_CPU, Reason.COMPUTED, (), at_seconds=value)


def taken(node_reports: RemoteNodeReports) -> FromLinkProcess:
    async def take() -> FromLinkProcess:
        async with asyncio.timeout(10):
            return await node_reports.take()

    return asyncio.run(take())


def test_newest_wins() -> None:
    """One report a node, one checkpoint a pod, the last state of a link."""
    node_reports = RemoteNodeReports(Clock())
    node_reports.connected("n1")
    for cpu in range(1000):
        node_reports.report("n1", report(cpu))
        node_reports.checkpoints([("n1", CheckpointSaved("d", "p", "u", 1.0 + cpu, cpu))])
    node_reports.disconnected("n1")
    frame = taken(node_reports)
    assert (frame.links, frame.reports) == ({"n1": False}, {"n1": report(999)})
    assert [(node, saved.step) for node, saved in frame.saved] == [("n1", 999)]


def test_a_frame_is_bounded_and_nothing_is_lost() -> None:
    """Thousands of nodes go up in several frames, each node once, oldest word first."""
    node_reports = RemoteNodeReports(Clock())
    for number in range(600):
        node_reports.report(f"n{number}", report(number))
    node_reports.report("n0", report(7))
    frames = [taken(node_reports) for _ in range(3)]
    assert [len(frame.reports) for frame in frames] == [256, 256, 88]
    assert next(iter(frames[0].reports)) == "n1" and list(frames[2].reports)[-1] == "n0"
    assert len({node for frame in frames for node in frame.reports}) == 600


def test_decisions_nobody_takes_are_dropped_and_counted() -> None:
    """They are for watchers; the newest are kept."""
    node_reports = RemoteNodeReports(Clock())
    for value in range(5000):
        node_reports.decision("n", decision(value))
    frame = taken(node_reports)
    assert (len(frame.decisions), frame.dropped) == (4096, 904)
    assert frame.decisions[-1] == ("n", decision(4999))


def test_costs_age_and_go_with_their_link() -> None:
    """A checkpoint's age is told as of the moment it is asked for."""
    clock = Clock()
    node_reports = RemoteNodeReports(clock)
    assert node_reports.costs("n") == ()
    node_reports.learn({"n": (EvictionCost("u", "d/g", 1, 10.0), EvictionCost("v"))})
    clock.now += 5
    assert node_reports.costs("n") == (EvictionCost("u", "d/g", 1, 15.0), EvictionCost("v"))
    node_reports.disconnected("n")
    assert node_reports.costs("n") == ()


def test_another_leader_hears_nothing_of_the_last() -> None:
    """Reports, checkpoints and costs are forgotten; that links ended is not."""
    node_reports = RemoteNodeReports(Clock())
    node_reports.report("n", report(1))
    node_reports.checkpoints([("n", CheckpointSaved("d", "p", "u", 1.0, 1))])
    node_reports.decision("n", decision(1))
    node_reports.learn({"n": (EvictionCost("v"),)})
    node_reports.forget()
    assert node_reports.costs("n") == ()
    node_reports.disconnected("n")
    assert taken(node_reports) == FromLinkProcess(links={"n": False})

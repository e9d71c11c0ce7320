"""What simulated nodes use: online work, pods by their requests, never more CPU than there is."""

from __future__ import annotations

import pytest

from local.simnodes.usage import DailyCurve, TraceLoad, TraceSeries, UsageShare, Worker, node_use
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from tests.pods import make_pod

NODE = Usage(10_000, 10_000)
IDLE = UsageShare(0.0, 0.0)
FULLY = UsageShare(1.0, 1.0)


def online(uid: str, cpu: int, share: UsageShare = FULLY) -> Worker:
    return Worker(make_pod("d", uid, uid, ResourceVector({CPU: cpu, MEMORY: cpu})), share)


def lent(uid: str, cpu: int, share: UsageShare = FULLY) -> Worker:
    requests = ResourceVector({BATCH_CPU: cpu, BATCH_MEMORY: cpu})
    return Worker(make_pod("d", uid, uid, requests, band=PriorityBand.BATCH), share)


@pytest.mark.parametrize(
    ("case", "load", "workers", "node", "system"),
    [
        ("an idle node runs its system", IDLE, [], 200, 200),
        ("online work outside pods is the system's", UsageShare(0.3, 0.3), [], 3000, 3000),
        ("online pods are part of the online work", UsageShare(0.3, 0.3), [online("a", 2000)], 3000, 1000),
        ("online pods may use more than the model says", UsageShare(0.3, 0.3), [online("a", 4000)], 4200, 200),
        ("lent pods come on top", UsageShare(0.3, 0.3), [lent("b", 2000, UsageShare(0.5, 0.5))], 4000, 3000),
        ("no more CPU than the node has", UsageShare(0.3, 0.3), [lent("b", 9000)], 10_000, 3000),
    ],
)
def test_use_of_a_node(case: str, load: UsageShare, workers: list[Worker], node: int, system: int) -> None:
    """The system takes what of the online work no pod accounts for."""
    use = node_use(NODE, load, workers)
    assert (use.node.cpu_millis, use.system.cpu_millis) == (node, system), case


def test_lent_pods_share_what_is_left() -> None:
    """In proportion to what they want; memory is not taken from anybody."""
    use = node_use(NODE, UsageShare(0.4, 0.0), [lent("a", 6000), lent("b", 6000)])
    assert [use.pods[uid].cpu_millis for uid in "ab"] == [3000, 3000]
    assert [use.pods[uid].memory_bytes for uid in "ab"] == [6000, 6000]


def test_a_day_is_quiet_at_four_and_busy_at_sixteen() -> None:
    """And the next day is the same."""
    curve = DailyCurve(mean_ratio=0.3, swing_ratio=0.2)
    hours = [curve.at(0, hour * 3600.0).cpu_ratio for hour in range(24)]
    assert abs(hours.index(min(hours)) - 4) <= 1 and abs(hours.index(max(hours)) - 16) <= 1
    assert curve.at(0, 3600.0) == pytest.approx(curve.at(0, 90_000.0))


def test_nodes_differ() -> None:
    """Or the cluster would breathe as one."""
    curve = DailyCurve()
    assert len({curve.at(index, 0.0).cpu_ratio for index in range(100)}) == 100


TRACE = TraceLoad(
    [
        TraceSeries([0.0, 60.0, 120.0], [UsageShare(0.1, 0.5), UsageShare(0.2, 0.5), UsageShare(0.3, 0.5)]),
        TraceSeries([0.0], [UsageShare(0.9, 0.9)]),
    ]
)


@pytest.mark.parametrize(
    ("case", "index", "seconds", "cpu"),
    [
        ("at the start", 0, 0.0, 0.1),
        ("until the next row", 0, 59.0, 0.1),
        ("from the next row on", 0, 60.0, 0.2),
        ("again from its start", 0, 130.0, 0.1),
        ("the next machine", 1, 500.0, 0.9),
        ("the first machine again, an hour apart", 2, 60.0, 0.2),
    ],
)
def test_a_trace(case: str, index: int, seconds: float, cpu: float) -> None:
    """Machines in turn, each from its own start."""
    assert TRACE.at(index, seconds).cpu_ratio == cpu, case

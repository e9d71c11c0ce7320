"""The JSON of a simulated node has everything that was decided, in base units."""

from __future__ import annotations

import pytest

from model.decision import Unit
from model.reason import Reason
from tests.view.nodes import BATCH_CPU, BATCH_MEMORY, CEILING, GIB, decision, simulated_node
from view.simulated_node import SimulatedEviction, SimulatedLimit, SimulatedZone
from view.simulated_node_json import AmountOut, LimitOut, TermOut, node_out


def test_amounts_have_their_terms() -> None:
    """By resource; what is written as integers."""
    zone = SimulatedZone("node-0", (BATCH_CPU,), (BATCH_CPU,))
    out = node_out(simulated_node(prepared=(BATCH_CPU, BATCH_MEMORY), zones=(zone,)))
    terms = [TermOut("capacity", 4000), TermOut("margin", -1500)]
    assert out.resources["kubernetes.io/batch-cpu"] == AmountOut(2500, "milli", terms, "usage")
    assert out.prepared == {"kubernetes.io/batch-cpu": 2500, "kubernetes.io/batch-memory": 7 * GIB}
    assert (out.zones[0].name, out.zones[0].prepared) == ("node-0", {"kubernetes.io/batch-cpu": 2500})
    assert out.degraded is None


def test_why_nothing_is_lent() -> None:
    assert node_out(simulated_node(degraded=Reason.NODE_METRICS_STALE)).degraded == "NodeMetricsStale"


def test_every_limit_is_told() -> None:
    """Also one that an untouched node holds already."""
    out = node_out(simulated_node(limits=(SimulatedLimit("/besteffort", "cpu.max", 250_000, CEILING, written=False),)))
    terms = [TermOut("capacity", 400_000), TermOut("online", -150_000)]
    assert out.limits == [LimitOut("/besteffort", "cpu.max", 250_000, CEILING.unit.value, terms, "Computed", "")]


@pytest.mark.parametrize(("notice", "seconds"), [(None, 0), (29.2, 30)])
def test_notice_is_whole_seconds(notice: float | None, seconds: int) -> None:
    """0 where a pod is not told before."""
    freed = decision("evict", Unit.BYTES, ("in use", GIB), subject="pod/d/job")
    out = node_out(simulated_node(evictions=(SimulatedEviction("d/job", freed, "memory", notice, 5),)))
    assert [(one.pod, one.frees, one.notice_seconds, one.grace_seconds) for one in out.evictions] == [
        ("d/job", GIB, seconds, 5)
    ]

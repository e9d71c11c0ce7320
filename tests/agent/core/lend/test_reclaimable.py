"""Lending as a whole: when nothing may be lent, what comes out otherwise, and what must always hold."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agent.core.lend.reclaimable import LendingFacts, NodeLending, lending
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodemetric import HostApplicationMetric, NodeMetric, PodMetric
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import CalculatePolicy, ColocationStrategy, NormalizationStrategy, RatioModel
from model.topology import CpuBasics, Zone
from tests.pods import make_pod, with_fields

GIB = 1 << 30
STRATEGY = ColocationStrategy()
ANNOTATED = NormalizationStrategy(largest_annotated_ratio=5.0)
NAMES = [BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY]


def vector(cpu: int, memory: int = 0) -> ResourceVector:
    return ResourceVector({CPU: cpu, MEMORY: memory})


def node(cpu: int = 2000, memory: int = 8 * GIB, **more: Any) -> Node:
    return Node("n", **{"capacity": vector(cpu, memory), "allocatable": vector(cpu, memory), **more})


def pod(name: str = "web", cpu: int = 1200, memory: int = 2 * GIB, **more: Any) -> Pod:
    fields = {"requests": vector(cpu, memory), "phase": PodPhase.RUNNING, **more}
    return make_pod("d", name, f"uid-{name}", **fields)


def used(name: str = "web", cpu: int = 400, memory: int = GIB, band: PriorityBand = PriorityBand.PROD) -> PodMetric:
    return PodMetric("d", name, Usage(cpu, memory), band)


def metric(*pods: PodMetric, **more: Any) -> NodeMetric:
    fields = {"updated_seconds": 90.0, "node": Usage(700, GIB), "system": Usage(100, GIB // 2), "pods": pods}
    return NodeMetric(**{**fields, **more})


def facts(**more: Any) -> LendingFacts:
    return LendingFacts(**{"node": node(), "pods": (pod(),), "metric": metric(used()), "now": 100.0, **more})


def values(lent: NodeLending) -> dict[str, int]:
    return {decision.name: decision.value for decision in lent.reclaimable}


def test_what_is_free_is_lent() -> None:
    """2000 - 40 % - system 100 - used 400 = 700m; 8Gi - 35 % - 0.5Gi - 1Gi of memory; no prediction, so no mid."""
    lent = lending(facts(), STRATEGY)
    memory = 8 * GIB - int(8 * GIB * 0.35) - GIB // 2 - GIB
    assert values(lent) == {BATCH_CPU: 700, BATCH_MEMORY: memory, MID_CPU: 0, MID_MEMORY: 0}
    assert [d.name for d in lent.reclaimable] == [d.name for d in lent.prepared] == NAMES
    assert [d.policy for d in lent.reclaimable] == ["usage", "usage", "prediction", "prediction"]
    assert {d.at_seconds for d in lent.reclaimable} == {90.0}
    assert {d.subject for d in lent.reclaimable} == {"node/n"}
    assert (lent.zones, lent.origin, lent.normalization_ratio, lent.degraded) == ((), None, None, None)


def test_each_resource_follows_its_own_policy() -> None:
    """CPU by the larger of usage and request: 2000 - 800 - 100 - 1200 < 0; memory by request: 8Gi - 35 % - 2Gi."""
    strategy = ColocationStrategy(cpu_policy=CalculatePolicy.MAX_USAGE_REQUEST, memory_policy=CalculatePolicy.REQUEST)
    lent = lending(facts(), strategy)
    assert [d.policy for d in lent.reclaimable[:2]] == ["maxUsageRequest", "request"]
    assert values(lent)[BATCH_CPU] == 0
    assert values(lent)[BATCH_MEMORY] == 8 * GIB - int(8 * GIB * 0.35) - 2 * GIB


def test_koordinator_example() -> None:
    """Pods of several classes on 100 CPUs and 120 GB at 65 %, as the reference controller computes it.

    CPU: 100 - 35 - 8 - (LSE request 12 + used 7 + mid used 20 + dangling 3) = 15 CPUs;
    memory: 120 - 42 - 11 - (6 + 7 + 20 + 3) = 31 GB.
    """
    gb = 10**9
    pods = (
        pod("exclusive", 12_000, 12 * gb, qos=QoSClass.LSE),
        pod("online", 10_000, 10 * gb),
        pod("middle", 20_000, 40 * gb, band=PriorityBand.MID, qos=QoSClass.BE, phase=PodPhase.PENDING),
        with_fields(
            pod("work", 0, 0, band=PriorityBand.BATCH, qos=QoSClass.BE, kubernetes_qos=KubernetesQoS.BEST_EFFORT),
            requests=ResourceVector({BATCH_MEMORY: 9 * gb}),
        ),
        pod("done", 10_000, 10 * gb, phase=PodPhase.SUCCEEDED),
    )
    measured = (("exclusive", 6), ("online", 7), ("middle", 20), ("work", 9), ("done", 3))
    seen = metric(*(used(name, n * 1000, n * gb) for name, n in measured), system=Usage(8000, 11 * gb))
    strategy = ColocationStrategy(cpu_reclaim_threshold_pct=65)
    lent = lending(facts(node=node(100_000, 120 * gb), pods=pods, metric=seen), strategy)
    assert (values(lent)[BATCH_CPU], values(lent)[BATCH_MEMORY]) == (15_000, 31 * gb)


def test_the_nodes_annotations_count() -> None:
    """A reservation of 300m replaces 100m of system use; third parties took 50m of 500 that are left, twice as fast."""
    colocation = NodeColocation(vector(300), ResourceVector({BATCH_CPU: 50}), 2.0)
    lent = lending(facts(colocation=colocation), STRATEGY, ANNOTATED)
    assert values(lent)[BATCH_CPU] == 500
    assert lent.prepared[0].value == 950
    assert lent.origin is not None and lent.origin[BATCH_CPU] == 1000
    assert lent.normalization_ratio is None, "it is somebody else's, and stays as they wrote it"
    assert [d.value for d in lent.final] == [950, values(lent)[BATCH_MEMORY], 0, 0]


def test_third_parties_that_took_nothing_have_an_origin() -> None:
    """They read what they may take; it goes with the annotation, and when nothing is lent."""
    zero = facts(colocation=NodeColocation(third_party=ResourceVector()))
    lent = lending(zero, STRATEGY)
    assert lent.origin is not None and lent.origin[BATCH_CPU] == lent.prepared[0].value == 700
    assert lending(facts(), STRATEGY).origin is None
    assert lending(zero, ColocationStrategy(enable=False)).origin is None


def test_host_applications_above_batch_count() -> None:
    """Mid ones against batch, production ones against both: unallocated 2000 - (100 + 30) - 1200 = 670."""
    applications = (
        HostApplicationMetric("proxy", Usage(30, 0), PriorityBand.PROD),
        HostApplicationMetric("cache", Usage(5, 0), PriorityBand.MID),
        HostApplicationMetric("yarn", Usage(900, 0), PriorityBand.BATCH),
    )
    seen = metric(used(), host_applications=applications)
    lent = lending(facts(metric=seen), ColocationStrategy(mid_unallocated_pct=100))
    assert (values(lent)[BATCH_CPU], values(lent)[MID_CPU]) == (665, 670)


def test_a_ratio_of_the_annotation_that_nobody_allowed_multiplies_nothing() -> None:
    """An agent's token can write it, and its agent would offer five times as much from then on."""
    lent = lending(facts(colocation=NodeColocation(normalization_ratio=5.0)), STRATEGY)
    assert (lent.reclaimable[0].value, lent.prepared[0].value, lent.normalization_ratio) == (700, 700, None)


def test_normalization_follows_the_strategy() -> None:
    """700m on a CPU that is half as fast again are 1050m."""
    strategy = NormalizationStrategy(enable=True, models={"X": RatioModel(base=1.5)})
    lent = lending(facts(cpu=CpuBasics("X")), STRATEGY, strategy)
    assert (lent.reclaimable[0].value, lent.prepared[0].value, lent.normalization_ratio) == (700, 1050, 1.5)


def test_zones() -> None:
    """Half of the system and of the pod each: 1000 - 400 - 50 - 200 = 350m; normalised like the node."""
    zones = tuple(Zone(n, f"node-{n}", vector(1000, 4 * GIB)) for n in (0, 1))
    lent = lending(facts(zones=zones, colocation=NodeColocation(normalization_ratio=1.2)), STRATEGY, ANNOTATED)
    assert [(zone.id, zone.name) for zone in lent.zones] == [(0, "node-0"), (1, "node-1")]
    for zone in lent.zones:
        assert [d.name for d in zone.decisions] == NAMES[:2]
        assert zone.decisions[0].subject == f"node/n/zone/{zone.name}"
        assert zone.decisions[1].value == 4 * GIB - int(4 * GIB * 0.35) - GIB // 4 - GIB // 2
        assert (zone.decisions[0].value, zone.prepared[0].value) == (350, 420)


def test_a_zone_never_has_more_than_its_share_times_the_ratio() -> None:
    """350 x 1.33 = 465.5 of the zone are 465; 700 x 1.33 = 931 of the node."""
    zones = (Zone(0, "node-0", vector(1000, GIB)), Zone(1, "node-1", vector(1000, GIB)))
    lent = lending(facts(zones=zones, colocation=NodeColocation(normalization_ratio=1.33)), STRATEGY, ANNOTATED)
    assert [zone.prepared[0].value for zone in lent.zones] == [465, 465] and lent.prepared[0].value == 931


WITHHELD: dict[str, tuple[dict[str, Any], Reason]] = {
    "documents deleted": ({"settings_deleted": True}, Reason.SETTINGS_DELETED),
    "documents not looked up": ({"settings_known": False, "metric": None}, Reason.SETTINGS_UNREAD),
    "no node": ({"node": None}, Reason.PODS_UNKNOWN),
    "no pods": ({"pods": None}, Reason.PODS_UNKNOWN),
    "no metric": ({"metric": None}, Reason.NODE_METRICS_MISSING),
    "a metric never written": ({"metric": metric(updated_seconds=None)}, Reason.NODE_METRICS_MISSING),
    "no use of the node": ({"metric": metric(node=None)}, Reason.NODE_METRICS_MISSING),
    "no use of the system": ({"metric": metric(system=None)}, Reason.NODE_METRICS_MISSING),
    "an old metric": ({"now": 990.5}, Reason.NODE_METRICS_STALE),
    "an old pod list": ({"pods_age_seconds": 900.5}, Reason.PODS_STALE),
}


@pytest.mark.parametrize(("change", "reason"), WITHHELD.values(), ids=WITHHELD.keys())
def test_missing_facts_lend_nothing(change: dict[str, Any], reason: Reason) -> None:
    """Ignorance is zero with a reason, and the Node's keys are to be removed."""
    lent = lending(facts(zones=(Zone(0, "node-0", vector(2000)),), **change), STRATEGY)
    zone = lent.zones[0]
    assert [d.name for d in lent.reclaimable] == NAMES and [d.name for d in zone.decisions] == NAMES[:2]
    assert {(d.value, d.reason) for d in (*lent.reclaimable, *zone.decisions)} == {(0, reason)}
    assert (lent.prepared, zone.prepared, lent.origin, lent.degraded) == ((), (), None, reason)
    assert lent.final == lent.reclaimable


def test_switched_off_lends_nothing() -> None:
    """Also where facts are missing: the switch is what the operator must know of."""
    for one in (facts(), facts(node=None, metric=None)):
        assert lending(one, ColocationStrategy(enable=False)).degraded is Reason.LENDING_DISABLED


@pytest.mark.parametrize("change", [{"now": 990.0}, {"pods_age_seconds": 900.0}, {"now": 80.0}])
def test_facts_at_the_edge_of_their_age_are_good(change: dict[str, float]) -> None:
    """Exactly degrade_seconds old is not too old, nor is a metric of a clock slightly ahead."""
    assert lending(facts(**change), STRATEGY).degraded is None


BANDS = st.sampled_from(list(PriorityBand))
AMOUNT = st.integers(0, 3000)


@st.composite
def pods_and_metrics(draw: st.DrawFn) -> tuple[tuple[Pod, ...], tuple[PodMetric, ...]]:
    """Up to five pods of any class; each listed, measured, or both."""
    pods, metrics = [], []
    for number in range(draw(st.integers(0, 5))):
        name, band = f"p{number}", draw(BANDS)
        presence = draw(st.sampled_from(("listed", "measured", "both")))
        if presence != "measured":
            pods.append(
                pod(
                    name,
                    draw(AMOUNT),
                    draw(AMOUNT),
                    band=band,
                    qos=draw(st.sampled_from(list(QoSClass))),
                    phase=draw(st.sampled_from(list(PodPhase))),
                    numa_zones=draw(st.sampled_from(((), (0,), (1,), (0, 1), (7,)))),
                )
            )
        if presence != "listed":
            metrics.append(used(name, draw(AMOUNT), draw(AMOUNT), band))
    return tuple(pods), tuple(metrics)


@st.composite
def situations(draw: st.DrawFn) -> tuple[LendingFacts, ColocationStrategy]:
    """A node in any state with any policy; memory is counted in few bytes, so that both resources get tight."""
    pods, metrics = draw(pods_and_metrics())
    size, memory = draw(st.integers(0, 8000)), draw(st.integers(0, 8000))
    seen = metric(
        *metrics,
        node=Usage(draw(AMOUNT), draw(AMOUNT)),
        system=Usage(draw(AMOUNT), draw(AMOUNT)),
        host_applications=(HostApplicationMetric("h", Usage(draw(AMOUNT), draw(AMOUNT)), draw(BANDS)),),
        prod_reclaimable=draw(st.one_of(st.none(), st.builds(Usage, AMOUNT, AMOUNT))),
    )
    strategy = ColocationStrategy(
        cpu_reclaim_threshold_pct=draw(st.integers(0, 200)),
        memory_reclaim_threshold_pct=draw(st.integers(0, 200)),
        cpu_policy=draw(st.sampled_from(list(CalculatePolicy))),
        memory_policy=draw(st.sampled_from(list(CalculatePolicy))),
        batch_cpu_threshold_pct=draw(st.one_of(st.none(), st.integers(0, 200))),
        mid_unallocated_pct=draw(st.integers(0, 100)),
        mid_cpu_threshold_pct=draw(st.integers(0, 100)),
    )
    allocatable = vector(draw(st.integers(0, 9000)), draw(st.integers(0, 9000)))
    zones = (Zone(0, "node-0", vector(size // 2, memory // 2)), Zone(1, "node-1", vector(size - size // 2, memory)))
    colocation = NodeColocation(
        vector(draw(AMOUNT), draw(AMOUNT)), ResourceVector({BATCH_CPU: draw(AMOUNT), BATCH_MEMORY: draw(AMOUNT)})
    )
    state = facts(
        node=node(size, memory, allocatable=allocatable), pods=pods, metric=seen, zones=zones, colocation=colocation
    )
    return state, strategy


def everything(state: LendingFacts, strategy: ColocationStrategy) -> dict[tuple[str, str], int]:
    """Each amount of node and zones by subject and name."""
    lent = lending(state, strategy)
    zones = (decision for zone in lent.zones for decision in zone.decisions)
    return {(d.subject, d.name): d.value for d in (*lent.reclaimable, *zones)}


def never_more(less: dict[tuple[str, str], int], more: dict[tuple[str, str], int]) -> bool:
    return all(less[key] <= more[key] for key in more)


def with_metric(state: LendingFacts, **change: Any) -> LendingFacts:
    assert state.metric is not None
    return msgspec.structs.replace(state, metric=msgspec.structs.replace(state.metric, **change))


def grown(usage: Usage, cpu: int, memory: int) -> Usage:
    return Usage(usage.cpu_millis + cpu, usage.memory_bytes + memory)


@given(situations())
def test_lending_stays_within_the_node(situation: tuple[LendingFacts, ColocationStrategy]) -> None:
    """0 to capacity; batch at most capacity - margin - high-priority use; written at most what third parties leave."""
    state, strategy = situation
    assert state.node is not None and state.metric is not None and state.pods is not None
    capacity = state.node.capacity
    lent = lending(state, strategy)
    for decision, native in zip(lent.reclaimable, (CPU, MEMORY, CPU, MEMORY), strict=True):
        assert 0 <= decision.value <= capacity[native]
    for zone, own in zip(state.zones, lent.zones, strict=True):
        assert 0 <= own.decisions[0].value <= zone.allocatable[CPU]
        assert 0 <= own.decisions[1].value <= zone.allocatable[MEMORY]
    below = (PriorityBand.BATCH, PriorityBand.FREE)
    low = {one.key for one in state.pods if one.colocation.band in below and not one.terminal}
    high = sum(m.usage.cpu_millis for m in state.metric.pods if m.band not in below and m.key not in low)
    # An LSE pod's request replaces its usage, and requests may be exceeded: only the others bound lending by usage.
    exclusive = {one.key for one in state.pods if one.colocation.qos is QoSClass.LSE and not one.terminal}
    high -= sum(m.usage.cpu_millis for m in state.metric.pods if m.band not in below and m.key in exclusive - low)
    margin = int(capacity[CPU] * ((100 - strategy.cpu_reclaim_threshold_pct) / 100))
    assert lent.reclaimable[0].value <= max(capacity[CPU] - margin - high, 0)
    for computed, written in zip(lent.reclaimable[:2], lent.prepared[:2], strict=True):
        third = state.colocation.third_party or ResourceVector()
        assert written.value == max(computed.value - third[computed.name], 0)


@given(situations(), AMOUNT, AMOUNT, st.integers(0, 9))
def test_more_use_never_lends_more(
    situation: tuple[LendingFacts, ColocationStrategy], cpu: int, memory: int, which: int
) -> None:
    """Of the node, of the system, of a host application or of any pod."""
    state, strategy = situation
    seen = state.metric
    assert seen is not None and seen.node is not None and seen.system is not None
    changes: list[dict[str, Any]] = [
        {"node": grown(seen.node, cpu, memory)},
        {"system": grown(seen.system, cpu, memory)},
        {
            "host_applications": tuple(
                msgspec.structs.replace(one, usage=grown(one.usage, cpu, memory)) for one in seen.host_applications
            )
        },
    ]
    for number, one in enumerate(seen.pods):
        busier = msgspec.structs.replace(one, usage=grown(one.usage, cpu, memory))
        changes.append({"pods": (*seen.pods[:number], busier, *seen.pods[number + 1 :])})
    busy = with_metric(state, **changes[which % len(changes)])
    assert never_more(everything(busy, strategy), everything(state, strategy))


@given(situations(), AMOUNT, AMOUNT, BANDS)
def test_another_pod_never_lends_more(
    situation: tuple[LendingFacts, ColocationStrategy], cpu: int, memory: int, band: PriorityBand
) -> None:
    """Whether it is measured, listed or both."""
    state, strategy = situation
    assert state.pods is not None and state.metric is not None
    before = everything(state, strategy)
    one = pod("another", cpu, memory, band=band)
    listed = msgspec.structs.replace(state, pods=(*state.pods, one))
    measured = (*state.metric.pods, used("another", cpu, memory, band))
    assert never_more(everything(listed, strategy), before)
    assert never_more(everything(with_metric(state, pods=measured), strategy), before)
    assert never_more(everything(with_metric(listed, pods=measured), strategy), before)


@given(situations(), st.integers(0, 4))
def test_losing_the_metric_of_a_pod_never_lends_more(
    situation: tuple[LendingFacts, ColocationStrategy], which: int
) -> None:
    """What nobody measures as a pod is measured as system use; without a reservation to hide in, that counts.

    Of the node only: which zone a pod that is not measured uses is not known. The request policy asks for no use at all.
    """
    state, strategy = situation
    assert state.metric is not None and state.metric.system is not None and state.node is not None
    measured = state.metric.pods
    assume(measured and strategy.memory_policy is not CalculatePolicy.REQUEST)
    whole = msgspec.structs.replace(state.node, allocatable=state.node.capacity)
    state = msgspec.structs.replace(state, node=whole, colocation=NodeColocation())
    which %= len(measured)
    lost = measured[which].usage
    blind = with_metric(
        state,
        pods=(*measured[:which], *measured[which + 1 :]),
        system=grown(state.metric.system, lost.cpu_millis, lost.memory_bytes),
    )
    for one, other in zip(lending(blind, strategy).reclaimable, lending(state, strategy).reclaimable, strict=True):
        assert one.value <= other.value


@given(situations(), st.sampled_from(("node", "system", "prod_reclaimable", "updated_seconds")))
def test_losing_any_other_metric_never_lends_more(
    situation: tuple[LendingFacts, ColocationStrategy], lost: str
) -> None:
    """A missing input is not a zero."""
    state, strategy = situation
    assert never_more(everything(with_metric(state, **{lost: None}), strategy), everything(state, strategy))


@given(situations(), AMOUNT, st.integers(0, 4))
def test_a_quiet_pod_that_loses_its_metric_keeps_its_request(
    situation: tuple[LendingFacts, ColocationStrategy], usage: int, which: int
) -> None:
    """A listed pod that uses no more than it requests: its request stands in, under every policy."""
    state, strategy = situation
    assert state.pods is not None and state.metric is not None
    quiet = pod("quiet", usage, usage, band=list(PriorityBand)[which])
    listed = msgspec.structs.replace(state, pods=(*state.pods, quiet))
    measured = with_metric(listed, pods=(*state.metric.pods, used("quiet", usage // 2, usage // 2)))
    assert never_more(everything(listed, strategy), everything(measured, strategy))


@given(situations())
def test_order_does_not_matter(situation: tuple[LendingFacts, ColocationStrategy]) -> None:
    """Pods and metrics come in any order; the amounts are the same."""
    state, strategy = situation
    assert state.pods is not None and state.metric is not None
    turned = with_metric(msgspec.structs.replace(state, pods=state.pods[::-1]), pods=state.metric.pods[::-1])
    assert everything(turned, strategy) == everything(state, strategy)

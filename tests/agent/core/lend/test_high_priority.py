"""Who keeps how much from batch, in each situation and under each policy."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.lend.high_priority import KeptAmount, high_priority_pods, kept, kept_by_pods, kept_in_zones
from agent.core.lend.lending_scope import lendables
from model.nodemetric import NodeMetric, PodMetric
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from model.strategy import CalculatePolicy, ColocationStrategy
from model.topology import KubeletPolicy
from tests.pods import make_pod

USAGE, REQUEST, LARGER = CalculatePolicy.USAGE, CalculatePolicy.REQUEST, CalculatePolicy.MAX_USAGE_REQUEST


def pod(name: str = "web", request: int = 1000, **more: Any) -> Pod:
    """A running LS pod of the prod band; its memory request is ten times its CPU request."""
    requests = ResourceVector({CPU: request, MEMORY: 10 * request})
    return make_pod(
        **{"namespace": "d", "name": name, "uid": name, "requests": requests, "phase": PodPhase.RUNNING, **more}
    )


def measured(name: str = "web", cpu: int = 400, band: PriorityBand = PriorityBand.PROD) -> PodMetric:
    return PodMetric("d", name, Usage(cpu, 10 * cpu), band)


def keep(
    pods: list[Pod],
    metrics: list[PodMetric],
    policy: CalculatePolicy,
    memory: bool = False,
    kubelet: KubeletPolicy = KubeletPolicy.NONE,
) -> dict[str, int]:
    resource = lendables(ColocationStrategy(cpu_policy=policy, memory_policy=policy))[memory]
    found = kept(resource, kept_by_pods(resource, high_priority_pods(pods, NodeMetric(pods=tuple(metrics)), kubelet)))
    return {part.term: part.amount for part in found}


LSE = {"qos": QoSClass.LSE}
BELOW: dict[str, Any] = {
    "kubernetes_qos": KubernetesQoS.BEST_EFFORT,
    "requests": ResourceVector({BATCH_CPU: 100, BATCH_MEMORY: 4000}),
}
LENT: dict[str, Any] = {**BELOW, "requests": ResourceVector({MID_CPU: 900, MID_MEMORY: 9000})}
PLAIN: dict[str, Any] = {**BELOW, "requests": ResourceVector()}
SITUATIONS: dict[str, tuple[list[Pod], list[PodMetric], int, int, int]] = {
    # pods, metrics, then memory kept by usage, request, maxUsageRequest (requests 10000, usage 4000 unless said)
    "measured": ([pod()], [measured()], 4000, 10_000, 10_000),
    "measured above its request": ([pod()], [measured(cpu=1700)], 17_000, 10_000, 17_000),
    "LSE memory is reclaimed": ([pod(**LSE)], [measured()], 4000, 10_000, 10_000),
    "LSR": ([pod(qos=QoSClass.LSR)], [measured()], 4000, 10_000, 10_000),
    "not measured": ([pod()], [], 10_000, 10_000, 10_000),
    "pending, not measured": ([pod(phase=PodPhase.PENDING)], [], 10_000, 10_000, 10_000),
    "of an unknown phase": ([pod(phase=PodPhase.UNKNOWN)], [], 10_000, 10_000, 10_000),
    "mid": ([pod(band=PriorityBand.MID)], [measured()], 4000, 10_000, 10_000),
    "mid with QoS BE": ([pod(band=PriorityBand.MID, qos=QoSClass.BE)], [measured()], 4000, 10_000, 10_000),
    "mid that was lent what it asked for": ([pod(band=PriorityBand.MID, **LENT)], [measured()], 4000, 9000, 9000),
    "the same, not measured yet": ([pod(band=PriorityBand.MID, **LENT)], [], 9000, 9000, 9000),
    "no band": ([pod(band=PriorityBand.NONE)], [measured()], 4000, 10_000, 10_000),
    "batch": ([pod(band=PriorityBand.BATCH, **BELOW)], [measured()], 0, 0, 0),
    "batch whose metric says prod": ([pod(band=PriorityBand.BATCH, **BELOW)], [measured()], 0, 0, 0),
    "batch in name alone": ([pod(band=PriorityBand.BATCH)], [measured(band=PriorityBand.BATCH)], 4000, 10_000, 10_000),
    "free in name alone": ([pod(band=PriorityBand.FREE, qos=QoSClass.BE)], [], 10_000, 10_000, 10_000),
    "free": ([pod(band=PriorityBand.FREE, **BELOW)], [measured()], 0, 0, 0),
    "batch beyond what it asked for": ([pod(band=PriorityBand.BATCH, **BELOW)], [measured(cpu=700)], 3000, 3000, 3000),
    "best effort that asked for nothing": ([pod(band=PriorityBand.BATCH, **PLAIN)], [measured()], 4000, 4000, 4000),
    "the same, not measured": ([pod(band=PriorityBand.BATCH, **PLAIN)], [], 0, 0, 0),
    "finished": ([pod(phase=PodPhase.SUCCEEDED)], [], 0, 0, 0),
    "finished, still measured": ([pod(phase=PodPhase.FAILED)], [measured()], 4000, 4000, 4000),
    "dangling": ([], [measured()], 4000, 4000, 4000),
    "dangling without band": ([], [measured(band=PriorityBand.NONE)], 4000, 4000, 4000),
    "dangling mid": ([], [measured(band=PriorityBand.MID)], 4000, 4000, 4000),
    "dangling batch": ([], [measured(band=PriorityBand.BATCH)], 0, 0, 0),
    "dangling free": ([], [measured(band=PriorityBand.FREE)], 0, 0, 0),
    "all at once": ([pod(), pod("new", 500)], [measured(), measured("gone", 70)], 9700, 15_700, 15_700),
}


@pytest.mark.parametrize("case", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_what_is_kept_of_memory(case: tuple[list[Pod], list[PodMetric], int, int, int]) -> None:
    """The table of Koordinator's accounting, for each policy."""
    pods, metrics, *expected = case
    assert [sum(keep(pods, metrics, policy, True).values()) for policy in (USAGE, REQUEST, LARGER)] == expected


CPU_CASES: dict[str, tuple[list[Pod], list[PodMetric], int, int]] = {
    # pods, metrics, then CPU kept by usage and maxUsageRequest (request 1000, usage 400 unless said)
    "measured": ([pod()], [measured()], 400, 1000),
    "LSE is exclusive": ([pod(**LSE)], [measured()], 1000, 1000),
    "LSE resized to less than the CPUs it was given": ([pod(**LSE, cpuset="0-3")], [measured()], 4000, 4000),
    "LSE above its request": ([pod(**LSE)], [measured(cpu=1100)], 1000, 1100),
    "LSR gives what it does not use": ([pod(qos=QoSClass.LSR)], [measured()], 400, 1000),
    "SYSTEM is online": ([pod(qos=QoSClass.SYSTEM)], [measured()], 400, 1000),
    "dangling LSE": ([], [PodMetric("d", "web", Usage(400, 0), qos=QoSClass.LSE)], 400, 400),
}


@pytest.mark.parametrize("case", CPU_CASES.values(), ids=CPU_CASES.keys())
def test_what_is_kept_of_cpu(case: tuple[list[Pod], list[PodMetric], int, int]) -> None:
    """As memory, but an LSE pod's idle CPU stays its own."""
    pods, metrics, *expected = case
    assert [sum(keep(pods, metrics, policy).values()) for policy in (USAGE, LARGER)] == expected


PARTIAL: dict[str, tuple[list[Pod], tuple[str, ...], int, int]] = {
    # pods, what was not measured of a usage of 400 and 4000, CPU and memory kept (requests 1000 and 10000)
    "all measured": ([pod()], (), 400, 4000),
    "without memory": ([pod()], ("memory",), 400, 10_000),
    "without CPU": ([pod()], ("cpu",), 1000, 4000),
    "dangling, without memory": ([], ("memory",), 400, 0),
    "dangling, without CPU": ([], ("cpu",), 0, 4000),
}


@pytest.mark.parametrize(("pods", "missing", "cpu", "memory"), PARTIAL.values(), ids=PARTIAL.keys())
@pytest.mark.parametrize("policy", [USAGE, LARGER])
def test_half_a_metric(
    policy: CalculatePolicy, pods: list[Pod], missing: tuple[str, ...], cpu: int, memory: int
) -> None:
    """What is there counts; for the rest a listed pod's request stands in. Under the larger of both it counts anyway."""
    usage = Usage(0 if CPU in missing else 400, 0 if MEMORY in missing else 4000)
    metrics = [PodMetric("d", "web", usage, PriorityBand.PROD, missing=missing)]
    expected = [cpu, memory] if policy is USAGE or not pods else [1000, 10_000]
    assert [sum(keep(pods, metrics, policy, resource).values()) for resource in (False, True)] == expected


def test_cpu_that_nobody_asked_for_is_taken_back_and_not_kept() -> None:
    """Only memory stays with who took it."""
    plain = pod(band=PriorityBand.BATCH, **PLAIN)
    for policy in CalculatePolicy:
        assert sum(keep([plain], [measured()], policy).values()) == 0


def test_half_a_metric_of_best_effort() -> None:
    """Memory that was not measured is no memory in use."""
    half = PodMetric("d", "web", Usage(400, 0), missing=("memory",))
    assert sum(keep([pod(band=PriorityBand.BATCH, **PLAIN)], [half], USAGE, memory=True).values()) == 0


def test_each_situation_has_its_term() -> None:
    """A person can tell measured use, stand-in requests and dangling metrics apart."""
    pods = [pod("a"), pod("b"), pod("lse", 2000, **LSE), pod("new", 50)]
    metrics = [measured("a"), measured("b", 20), measured("lse", 1), measured("gone", 7)]
    assert keep(pods, metrics, USAGE) == {
        "high-priority used": 420,
        "high-priority not measured": 2050,
        "dangling metrics": 7,
    }
    assert keep(pods, metrics, LARGER) == {
        "high-priority used or requested": 4000,
        "high-priority not measured": 50,
        "dangling metrics": 7,
    }
    assert keep(pods, metrics, REQUEST, memory=True) == {"high-priority requested": 40_500, "dangling metrics": 70}
    assert keep([], [], USAGE) == {"high-priority used": 0}


def test_a_term_says_how_many_pods_it_sums() -> None:
    """Batch pods are not among them."""
    resource = lendables(ColocationStrategy())[0]
    held = high_priority_pods([pod("a"), pod("b", band=PriorityBand.BATCH, **BELOW)], NodeMetric(pods=(measured("a"),)))
    (used,) = kept(resource, kept_by_pods(resource, held))
    assert used == KeptAmount("high-priority used", 400, 1) and used.note == "measured usage; pods: 1"


ZONES: dict[str, tuple[tuple[int, ...], tuple[int, ...], list[int], list[int]]] = {
    # the pod's zones, the node's zones, kept CPU of 401m, kept memory of 4010 bytes, by zone
    "everywhere": ((), (0, 1), [201, 201], [2005, 2005]),
    "three zones": ((), (0, 1, 2), [134, 134, 134], [1337, 1337, 1337]),
    "pinned": ((1,), (0, 1), [0, 401], [0, 4010]),
    "pinned to two of three": ((0, 2), (0, 1, 2), [201, 0, 201], [2005, 0, 2005]),
    "one of its zones does not exist": ((1, 9), (0, 1), [0, 401], [0, 4010]),
    "none of its zones exists": ((8, 9), (0, 1), [201, 201], [2005, 2005]),
    "named twice": ((1, 1), (0, 1), [0, 401], [0, 4010]),
    "zone ids need not be dense": ((4,), (2, 4), [0, 401], [0, 4010]),
}


@pytest.mark.parametrize("case", ZONES.values(), ids=ZONES.keys())
def test_zones_share_evenly(case: tuple[tuple[int, ...], tuple[int, ...], list[int], list[int]]) -> None:
    """Split over the zones a pod is pinned to, rounded up, so that no zone lends what another counts on."""
    pinned, zones, *expected = case
    held = high_priority_pods([pod(numa_zones=pinned)], NodeMetric(pods=(measured(cpu=401),)))
    for resource, amounts in zip(lendables(ColocationStrategy()), expected, strict=True):
        found = kept_in_zones(resource, kept_by_pods(resource, held), zones)
        assert [sum(part.amount for part in own) for own in found] == amounts


def test_bytes_are_shared_in_thousandths() -> None:
    """Three pods of 10 bytes over 3 zones: 3 x 3.334 = 10.002, so 11, not 3 x 4 = 12."""
    memory = lendables(ColocationStrategy())[1]
    names = ("a", "b", "c")
    held = high_priority_pods(
        [pod(name) for name in names], NodeMetric(pods=tuple(measured(name, 1) for name in names))
    )
    zones = kept_in_zones(memory, kept_by_pods(memory, held), (0, 1, 2))
    assert zones == ((KeptAmount("high-priority used", 11, 3),),) * 3


def test_terms_of_a_zone_round_up_once() -> None:
    """Half a byte measured and half a byte assumed are one byte, not two: losing a metric must not free the other."""
    memory = lendables(ColocationStrategy(memory_policy=LARGER))[1]
    requests = ResourceVector({MEMORY: 1})
    pods = [pod("a", requests=requests), pod("b", requests=requests)]
    for metrics in ((measured("a", 0),), ()):
        zones = kept_in_zones(memory, kept_by_pods(memory, high_priority_pods(pods, NodeMetric(pods=metrics))), (0, 1))
        assert [sum(part.amount for part in own) for own in zones] == [1, 1]


def test_dangling_metrics_burden_every_zone() -> None:
    """Where an unlisted pod runs is not known."""
    cpu = lendables(ColocationStrategy())[0]
    held = high_priority_pods([], NodeMetric(pods=(measured(cpu=5),)))
    zones = kept_in_zones(cpu, kept_by_pods(cpu, held), (0, 1))
    assert [[(part.term, part.amount) for part in own] for own in zones] == [
        [("high-priority used", 0), ("dangling metrics", 3)]
    ] * 2


@pytest.mark.parametrize(("kubelet", "expected"), [(KubeletPolicy.NONE, 400), (KubeletPolicy.STATIC, 1000)])
def test_cpus_that_the_kubelet_gave_away_are_kept(kubelet: KubeletPolicy, expected: int) -> None:
    """Nobody else may run on them; its memory is measured as everybody's."""
    amounts = ResourceVector({CPU: 1000})
    own = pod(kubernetes_qos=KubernetesQoS.GUARANTEED, containers=(Container("main", amounts, amounts),))
    assert sum(keep([own], [measured()], USAGE, kubelet=kubelet).values()) == expected
    assert sum(keep([own], [measured()], USAGE, memory=True, kubelet=kubelet).values()) == 4000

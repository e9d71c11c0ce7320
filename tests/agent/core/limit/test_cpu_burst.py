"""What online containers may save up of their CPU limit, and that nobody else's file is touched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.limit.decide import NodeLimits
from agent.core.observe.knobs import UNLIMITED, burst_knob, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from model.pod.colocation import BurstTerms
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.resources import CPU, ResourceVector
from model.strategy import BurstPolicy, BurstStrategy
from tests.agent.core.limit.online_kernel import OnlineKernel, RefusedError, made, online, placed
from tests.pods import with_fields

V1, V2 = Layout(), Layout(version=2)
ON, OFF = BurstStrategy(BurstPolicy.CPU_BURST), BurstStrategy()
EACH_POD = 11
"""Ticks in which every pod's files are read once, and then some."""


class Node:
    """One node with these pods, its files made by the kubelet."""

    def __init__(self, build: Any, *pods: Pod, layout: Layout = V2, bursts: bool = True) -> None:
        self.kernel, self.pods, self.places = OnlineKernel(build, layout, bursts=bursts), pods, placed(layout, *pods)
        made(self.kernel, self.places, *pods)

    def ticks(self, strategy: BurstStrategy, count: int = 1) -> NodeLimits:
        return [self.kernel.tick(strategy, self.pods, self.places) for _ in range(count)][-1]

    def bursts(self) -> dict[str, int]:
        found = {
            knob.cgroup.rsplit("/", 1)[-1]: value for knob, value in self.kernel.held.items() if "burst" in knob.file
        }
        return {name: value for name, value in found.items() if value}

    def quota(self, container: str) -> Knob:
        return quota_knob(self.kernel.layout, self.places.pods["uid-web"].containers[container])


def own(policy: BurstPolicy | None = None, cpu_pct: int | None = None) -> dict[str, Any]:
    return {"burst": BurstTerms(policy, cpu_pct)}


# strategy, the pod's limits in milli-CPU, other fields of the pod -> bursts by cgroup
CASES: dict[str, tuple[BurstStrategy, dict[str, int], dict[str, Any], dict[str, int]]] = {
    "off": (OFF, {"app": 1000}, {}, {}),
    "one period's limit, since the kernel takes no more": (
        ON,
        {"app": 1000},
        {},
        {"app": 100_000, "poduid-web": 100_000},
    ),
    "a smaller share": (
        BurstStrategy(BurstPolicy.CPU_BURST, cpu_pct=30),
        {"app": 1000},
        {},
        {"app": 30_000, "poduid-web": 30_000},
    ),
    "two containers": (ON, {"a": 500, "b": 250}, {}, {"a": 50_000, "b": 25_000, "poduid-web": 75_000}),
    "one of them without a limit: neither has the pod one": (ON, {"a": 500, "b": 0}, {}, {"a": 50_000}),
    "no limit": (ON, {"app": 0}, {}, {}),
    "the kernel's smallest quota": (ON, {"app": 5}, {}, {}),
    "auto": (BurstStrategy(BurstPolicy.AUTO), {"app": 200}, {}, {"app": 20_000, "poduid-web": 20_000}),
    "quota bursts alone": (BurstStrategy(BurstPolicy.QUOTA_BURST), {"app": 200}, {}, {}),
    "LSR": (ON, {"app": 2000}, {"qos_label": QoSClass.LSR}, {"app": 200_000, "poduid-web": 200_000}),
    "no label": (ON, {"app": 200}, {"qos_label": QoSClass.NONE}, {"app": 20_000, "poduid-web": 20_000}),
    "LSE has its CPUs alone": (ON, {"app": 2000}, {"qos_label": QoSClass.LSE}, {}),
    "SYSTEM": (ON, {"app": 2000}, {"qos_label": QoSClass.SYSTEM}, {}),
    "a mid pod lives on what is lent": (ON, {"app": 200}, {"band": PriorityBand.MID, "below_prod": True}, {}),
    "a batch pod by its priority alone": (ON, {"app": 200}, {"band": PriorityBand.BATCH, "below_prod": True}, {}),
    "label BE": (ON, {"app": 200}, {"qos_label": QoSClass.BE, "kubernetes_qos": KubernetesQoS.BEST_EFFORT}, {}),
    "below the best-effort root": (ON, {"app": 200}, {"kubernetes_qos": KubernetesQoS.BEST_EFFORT}, {}),
    "it has ended": (ON, {"app": 200}, {"phase": PodPhase.SUCCEEDED}, {}),
    "by its own word": (OFF, {"app": 200}, own(BurstPolicy.CPU_BURST), {"app": 20_000, "poduid-web": 20_000}),
    "not by its own word": (ON, {"app": 200}, own(BurstPolicy.NONE), {}),
    "its own share": (ON, {"app": 200}, own(cpu_pct=50), {"app": 10_000, "poduid-web": 10_000}),
}


@pytest.mark.parametrize("layout", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize(("strategy", "limits", "fields", "expected"), CASES.values(), ids=CASES.keys())
def test_what_may_be_saved_up(
    build: Any,
    layout: Layout,
    strategy: BurstStrategy,
    limits: dict[str, int],
    fields: dict[str, Any],
    expected: dict[str, int],
) -> None:
    """Of every container with a quota, and of its pod where that has one."""
    node = Node(build, with_fields(online(build, **limits), **fields), layout=layout)
    if limits == {"app": 5}:
        for cgroup in ("app", ""):
            node.kernel.held[quota_knob(layout, f"{node.places.pods['uid-web'].path}/{cgroup}".rstrip("/"))] = 1000
        expected = {"app": 1000, "poduid-web": 1000}
    node.ticks(strategy, 2)
    assert node.bursts() == expected


def test_the_record(build: Any, terms: Any) -> None:
    """Its terms sum to what is written, and say what bounds it."""
    node = Node(build, online(build, app=500))
    decision = node.ticks(ON).decisions[burst_knob(V2, node.places.pods["uid-web"].containers["app"])]
    assert terms(decision) == {"limits": 500_000, "one period's limit": -450_000}
    assert (decision.reason, decision.detail) == (Reason.CPU_BURST, "pod default/web, container app")


def test_init_containers(build: Any) -> None:
    """A sidecar runs beside the others, so that the pod saves up for it, too; one that only starts does not count."""
    limit = ResourceVector({CPU: 100})
    inits = (Container("proxy", limits=limit, sidecar=True), Container("setup", limits=limit))
    node = Node(build, with_fields(online(build, app=200), init_containers=inits))
    node.ticks(ON, 2)
    assert node.bursts() == {"app": 20_000, "poduid-web": 20_000}, "the pod's quota is the kubelet's word"
    node.kernel.held[quota_knob(V2, node.places.pods["uid-web"].path)] = 30_000
    node.ticks(ON, EACH_POD)
    assert node.bursts() == {"app": 20_000, "poduid-web": 30_000}


def test_koordinator_1477_and_2326(build: Any) -> None:
    """On v2 the file is cpu.max.burst, and the default 1000 % is never written as it is: the kernel would refuse it."""
    node = Node(build, online(build, app=100))
    node.ticks(BurstStrategy(BurstPolicy.CPU_BURST, cpu_pct=1000))
    assert {knob.file for knob, _ in node.kernel.written if "burst" in knob.file} == {"cpu.max.burst"}
    assert node.bursts() == {"app": 10_000, "poduid-web": 10_000}


def test_koordinator_2778_for_the_kubelet(build: Any) -> None:
    """A limit lowered in place: the kubelet's first write is refused, its next one taken, since the burst went first."""
    node = Node(build, online(build, app=1000))
    node.ticks(ON, 2)
    with pytest.raises(RefusedError):
        node.kernel.put(node.quota("app"), 50_000)
    node.pods = (online(build, app=500),)
    node.ticks(ON)
    node.kernel.put(node.quota("app"), 50_000)
    node.ticks(ON)
    assert node.bursts()["app"] == 50_000
    node.pods = (online(build, app=2000),)
    node.kernel.put(quota_knob(V2, node.places.pods["uid-web"].path), 200_000)
    node.kernel.put(node.quota("app"), 200_000)
    node.ticks(ON, EACH_POD)
    assert node.bursts() == {"app": 200_000, "poduid-web": 200_000}


def test_a_quota_that_ends(build: Any) -> None:
    """As for whole CPUs of its own: the burst goes back to what it was."""
    node = Node(build, online(build, app=1000))
    node.ticks(ON, 2)
    node.kernel.put(node.quota("app"), UNLIMITED)
    node.ticks(ON, EACH_POD)
    assert "app" not in node.bursts()


def test_off_gives_back_and_is_quiet(build: Any) -> None:
    """What the files held before, of whoever made them; then no file of an online pod is read any more."""
    node = Node(build, *(online(build, f"web{number}", app=100) for number in range(30)))
    before = dict(node.kernel.held)
    node.ticks(ON, 2)
    assert len(node.bursts()) >= 30
    node.ticks(OFF, EACH_POD)
    held = {knob: value for knob, value in node.kernel.held.items() if knob in before}
    assert held == before
    node.ticks(OFF, EACH_POD)
    assert not [knob for knob in node.kernel.read if "burst" in knob.file]


def test_off_where_the_pod_has_no_quota(build: Any) -> None:
    """Its containers' bursts end all the same."""
    node = Node(build, online(build, a=500, b=0))
    node.ticks(ON, 2)
    assert node.bursts() == {"a": 50_000}
    node.ticks(OFF, EACH_POD)
    assert node.bursts() == {} == node.kernel.originals


def test_a_restart_while_it_is_off(build: Any) -> None:
    """What an agent before this one left is found and given back."""
    node = Node(build, online(build, app=100))
    node.ticks(ON, 2)
    fresh = Node(build, online(build, app=100))
    fresh.kernel.held, fresh.kernel.ours, fresh.kernel.originals = (
        node.kernel.held,
        node.kernel.ours,
        node.kernel.originals,
    )
    fresh.ticks(OFF, EACH_POD)
    assert fresh.bursts() == {}


def test_a_kernel_without_bursts(build: Any) -> None:
    """Said of the best-effort root, among the limits that everybody sees; pods' files are not looked for in vain."""
    node = Node(build, online(build, app=100), bursts=False)
    limits = node.ticks(ON, 2)
    (record,) = [limit for limit in limits.of_all if limit.decision.reason is Reason.KNOB_ABSENT]
    assert record.knob == burst_knob(V2, V2.best_effort)
    assert [knob.cgroup for knob in node.kernel.read if "burst" in knob.file] == [V2.best_effort]
    assert not [knob for knob, _ in node.kernel.written if "burst" in knob.file]


def test_few_files_are_read(build: Any) -> None:
    """Once all hold what they shall, a tenth of the pods each tick."""
    node = Node(build, *(online(build, f"web{number}", app=100) for number in range(50)))
    node.ticks(ON, 2)
    assert len(node.bursts()) >= 50
    node.ticks(ON)
    assert len([knob for knob in node.kernel.read if knob.cgroup.startswith("/kubepods/burstable")]) == 5 * 2 * 2


def test_online_pods_do_not_count_as_limited(build: Any) -> None:
    """That number is about batch pods."""
    assert Node(build, online(build, app=100)).ticks(ON, 2).limited_pods == 0


def kubelet_writes(node: Node, strategy: BurstStrategy, knob: Knob, value: int) -> None:
    """It tries again."""
    for _ in range(EACH_POD):
        try:
            return node.kernel.put(knob, value)
        except RefusedError:
            node.ticks(strategy)
    raise AssertionError(f"{knob} was never taken")


_LIMITS = st.lists(st.integers(0, 30).map(lambda hundreds: hundreds * 100), min_size=2, max_size=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(steps=st.lists(st.tuples(st.sampled_from([ON, OFF, BurstStrategy(BurstPolicy.AUTO, 40)]), _LIMITS), max_size=6))
def test_whatever_happens(build: Any, steps: list[tuple[BurstStrategy, list[int]]]) -> None:
    """Resizes and switches in any order: no write of ours is refused, none is of a quota, no burst exceeds the limit,
    and off leaves what the kubelet wrote."""
    node = Node(build, online(build, a=1000, b=500))
    for strategy, (a, b) in steps:
        node.pods = (online(build, a=a, b=b),)
        node.ticks(strategy)
        resized = OnlineKernel(build, V2)
        made(resized, node.places, *node.pods)
        for knob, value in resized.held.items():
            if "burst" not in knob.file:
                kubelet_writes(node, strategy, knob, value)
        node.ticks(strategy, EACH_POD)
        for name, limit in (("a", a), ("b", b)):
            assert node.bursts().get(name, 0) <= limit * 100
        assert not [
            knob
            for knob, _ in node.kernel.written
            if knob.cgroup.startswith("/kubepods/burstable") and "burst" not in knob.file
        ]
    quotas = {knob: value for knob, value in node.kernel.held.items() if "burst" not in knob.file}
    node.ticks(OFF, 2 * EACH_POD)
    assert node.bursts() == {}
    assert quotas == {knob: value for knob, value in node.kernel.held.items() if "burst" not in knob.file}

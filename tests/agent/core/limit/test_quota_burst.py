"""Quotas of throttled online containers: raised in steps while shared CPUs are idle, never below what was granted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.core.limit.decide import NodeLimits
from agent.core.observe.knobs import UNLIMITED, is_quota, quota_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from model.pod.colocation import BurstTerms
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.strategy import BurstPolicy, BurstStrategy
from tests.agent.core.limit.online_kernel import OnlineKernel, made, online, placed
from tests.pods import with_fields

V1, V2 = Layout(), Layout(version=2)
ON, OFF = BurstStrategy(BurstPolicy.QUOTA_BURST), BurstStrategy()
RELEASED = 12
"""Ticks in which everything that nothing wants is given back."""


class Node:
    """One node with a pod of these containers; `play` is a second at so much use."""

    def __init__(self, build: Any, pod: Pod | None = None, layout: Layout = V2, **limits: int) -> None:
        self.kernel, self.pod = OnlineKernel(build, layout), pod or online(build, **(limits or {"app": 1000}))
        self.places = placed(layout, self.pod)
        made(self.kernel, self.places, self.pod)
        self.place = self.places.pods[self.pod.uid]

    def play(
        self, strategy: BurstStrategy = ON, *, throttled: bool = True, millis: int = 1000, count: int = 1
    ) -> NodeLimits:
        for _ in range(count):
            for container in self.pod.spec.containers:
                self.kernel.load(self.pod.uid, container.name, millis, throttled)
            found = self.kernel.tick(strategy, (self.pod,), self.places)
        return found

    def knob(self, name: str = "") -> Knob:
        return quota_knob(self.kernel.layout, self.place.containers[name] if name else self.place.path)

    def quota(self, name: str = "") -> int:
        return self.kernel.held[self.knob(name)]

    @property
    def quotas(self) -> dict[Knob, int]:
        return {knob: value for knob, value in self.kernel.held.items() if is_quota(knob)}


@pytest.mark.parametrize("layout", [V1, V2], ids=["v1", "v2"])
def test_up_and_down(build: Any, layout: Layout) -> None:
    """A fifth a tick to three times the limit, its pod with it; back to exactly what was there when it is calm."""
    node = Node(build, layout=layout)
    before = node.quotas
    node.play(count=2)
    node.play()
    assert (node.quota("app"), node.quota()) == (119_901, 119_901)
    node.play()
    assert (node.quota("app"), node.quota()) == (143_801, 143_801)
    node.play(count=20)
    assert 299_800 < node.quota("app") <= 300_000 and node.quota() >= node.quota("app")
    node.play(throttled=False, count=58)
    assert node.quota("app") > 299_800, "as long as it may need it again"
    node.play(throttled=False, count=8)
    assert node.quotas == before
    node.play(throttled=False, count=RELEASED)
    assert node.kernel.originals == {} and not [knob for knob in node.kernel.read if "podu" in knob.cgroup]


# the strategy's quota_pct, use of four CPUs, throttled -> the quota of a limit of one CPU at 150 ms, a tick later
STEPS: dict[str, tuple[int, int, bool, int]] = {
    "throttled": (300, 0, True, 179_801),
    "not throttled": (300, 0, False, 149_901),
    "to a smaller share": (160, 0, True, 159_901),
    "nearly busy: nothing rises": (300, 1900, True, 149_901),
    "busy": (300, 2000, True, 119_901),
    "a share that became smaller": (120, 0, False, 119_901),
    "no share at all": (100, 0, True, 100_000),
}


@pytest.mark.parametrize(("quota_pct", "used", "throttled", "expected"), STEPS.values(), ids=STEPS.keys())
def test_one_step(build: Any, quota_pct: int, used: int, throttled: bool, expected: int) -> None:
    """By what the container and the CPUs that all share are at."""
    node = Node(build)
    node.play(BurstStrategy(BurstPolicy.QUOTA_BURST, quota_pct=150), count=12)
    assert node.quota("app") == 149_901
    node.kernel.used_millis = used
    node.play(BurstStrategy(BurstPolicy.QUOTA_BURST, quota_pct=quota_pct), throttled=throttled)
    assert node.quota("app") == expected


def test_the_record(build: Any, terms: Any) -> None:
    """What was granted, and what came on top and why."""
    node = Node(build)
    limits = node.play(count=3)
    decision = limits.decisions[node.knob("app")]
    assert terms(decision) == {"granted": 100_000, "throttled: up": 20_000, "not the kubelet's": -99}
    assert decision.reason is Reason.QUOTA_BURST
    assert decision.detail == "pod default/web, container app; shared CPUs: idle"
    assert terms(limits.decisions[node.knob()]) == {"granted": 100_000, "its containers": 19_901}


def test_no_more_than_the_shared_cpus(build: Any) -> None:
    """However large the limit is."""
    node = Node(build, app=3000)
    node.play(count=20)
    assert 399_900 < node.quota("app") <= 400_000 and node.quota() == node.quota("app")


@pytest.mark.parametrize(("used", "raised"), [(500, True), (1700, False)])
def test_below_a_quota_of_all_pods(build: Any, used: int, raised: bool) -> None:
    """Where that is nearly used other online pods would be throttled with it, however idle the machine is."""
    node = Node(build, app=1000)
    node.kernel.pods_quota_millis, node.kernel.used_millis = 2000, used
    node.play(count=20)
    assert (100_000 < node.quota("app") <= 200_000) is raised and (node.quota("app") == 100_000) is not raised


def test_tokens_end_it(build: Any) -> None:
    """A period of ten seconds: a quarter of it at three times the limit, then down until it saved more."""
    strategy = BurstStrategy(BurstPolicy.QUOTA_BURST, quota_seconds=10)
    node = Node(build)
    node.play(strategy, count=2)
    highest = max(node.play(strategy, millis=3000) and node.quota("app") for _ in range(10))
    assert 100_000 < highest < 300_000 and node.quota("app") == 100_000
    node.play(strategy, millis=0, throttled=False, count=60)
    node.play(strategy, count=3)
    assert node.quota("app") > 100_000
    never = Node(build)
    never.play(BurstStrategy(BurstPolicy.QUOTA_BURST, quota_seconds=0), count=10)
    assert never.kernel.written == []


UNTOUCHED: dict[str, tuple[BurstStrategy, dict[str, Any]]] = {
    "off": (OFF, {}),
    "bursts alone": (BurstStrategy(BurstPolicy.CPU_BURST), {}),
    "not by its own word": (ON, {"burst": BurstTerms(BurstPolicy.NONE)}),
    "LSR": (ON, {"qos_label": QoSClass.LSR}),
    "LSE": (ON, {"qos_label": QoSClass.LSE}),
    "SYSTEM": (ON, {"qos_label": QoSClass.SYSTEM}),
    "BE": (ON, {"qos_label": QoSClass.BE, "kubernetes_qos": KubernetesQoS.BEST_EFFORT}),
    "mid": (ON, {"band": PriorityBand.MID, "below_prod": True}),
    "batch by its priority alone": (ON, {"band": PriorityBand.BATCH, "below_prod": True}),
    "below the best-effort root": (ON, {"kubernetes_qos": KubernetesQoS.BEST_EFFORT}),
    "it has ended": (ON, {"phase": PodPhase.SUCCEEDED}),
}


@pytest.mark.parametrize(("strategy", "fields"), UNTOUCHED.values(), ids=UNTOUCHED.keys())
def test_whose_quota_stays(build: Any, strategy: BurstStrategy, fields: dict[str, Any]) -> None:
    """However throttled it is."""
    node = Node(build, with_fields(online(build, app=1000), **fields))
    before = node.quotas
    node.play(strategy, count=6)
    assert node.quotas == before and not [
        knob for knob in node.kernel.read if knob.cgroup == node.place.path and is_quota(knob) and strategy is OFF
    ]


def test_by_its_own_word(build: Any) -> None:
    """Its policy, and how far."""
    own = BurstTerms(BurstPolicy.AUTO, quota_pct=110)
    node = Node(build, with_fields(online(build, app=1000), burst=own))
    node.play(OFF, count=6)
    assert node.quota("app") == 109_901


def test_pods_and_containers_without_a_quota(build: Any) -> None:
    """A pod without one lets its containers be raised alone; a container without one is left alone."""
    node = Node(build, app=1000, side=0)
    node.play(count=4)
    assert node.quota() == node.quota("side") == UNLIMITED and node.quota("app") > 100_000
    whole = Node(build)
    whole.kernel.held[whole.knob("app")] = UNLIMITED
    whole.play(count=4)
    assert whole.kernel.written == []


def test_two_containers(build: Any) -> None:
    """Their pod gets what both have beyond their limits."""
    node = Node(build, a=1000, b=500)
    node.play(count=3)
    beyond = node.quota("a") - 100_000 + node.quota("b") - 50_000
    assert 0 <= node.quota() - (150_000 + beyond) < 100


@pytest.mark.parametrize("throttled", [True, False])
def test_a_resize_while_raised(build: Any, throttled: bool) -> None:
    """What the kubelet writes stands, is what comes back when it is off, and is what the next raise counts from."""
    node = Node(build)
    node.play(count=5)
    for knob in (node.knob(), node.knob("app")):
        node.kernel.put(knob, 50_000)
    node.pod = online(build, app=500)
    node.play(throttled=throttled, count=1)
    assert (node.quota("app"), node.quota(), node.kernel.originals) == (50_000, 50_000, {})
    node.play(throttled=False, count=RELEASED)
    assert (node.quota("app"), node.quota(), node.kernel.originals) == (50_000, 50_000, {})
    node.play(count=20)
    assert 149_800 < node.quota("app") <= 150_000
    node.play(OFF, count=RELEASED)
    assert (node.quota("app"), node.quota(), node.kernel.originals) == (50_000, 50_000, {})


def test_a_resize_while_no_agent_runs(build: Any) -> None:
    """Neither the agent that comes next nor one that is switched off puts an older limit back."""
    for strategy in (ON, OFF):
        node = Node(build)
        node.play(count=5)
        for knob in (node.knob(), node.knob("app")):
            node.kernel.put(knob, 70_000)
        node.kernel.restart()
        node.play(strategy, throttled=False, count=RELEASED)
        assert (node.quota("app"), node.quota(), node.kernel.originals) == (70_000, 70_000, {})


def test_a_restart_while_raised(build: Any) -> None:
    """The new agent knows of no throttling yet: it gives back what the one before raised."""
    node = Node(build)
    before = node.quotas
    node.play(count=5)
    node.kernel.restart()
    node.play(throttled=False, count=RELEASED)
    assert node.quotas == before and node.kernel.originals == {}


def test_off_leaves_what_was_there(build: Any) -> None:
    """And then no quota of an online pod is read."""
    node = Node(build)
    before = node.quotas
    node.play(count=5)
    node.play(OFF, count=RELEASED)
    assert node.quotas == before and node.kernel.originals == {}
    node.play(OFF)
    assert not [knob for knob in node.kernel.read if knob.cgroup.startswith(node.place.path)]


def test_a_quota_in_another_unit(build: Any) -> None:
    """One that is no whole milli-CPU and not ours is somebody's, who counts otherwise."""
    node = Node(build)
    node.kernel.held[node.knob("app")] = 99_950
    node.play(count=5)
    assert node.kernel.written == []


def test_what_was_left_of_a_burst_is_given_back_below_a_quota_that_is_smaller_since(build: Any) -> None:
    """The kernel refuses a burst larger than its quota: an agent that starts finds one of its own that the kubelet cut,
    takes it for another program's, and gives it back after the quota was lowered again."""
    node = Node(build, layout=V1)
    auto = BurstStrategy(BurstPolicy.AUTO, quota_pct=150, quota_seconds=5)
    for strategy, resized, restarted in ((auto, 2000, 0), (ON, 1000, 1), (auto, 2000, 0), (ON, 300, 0), (ON, 300, 1)):
        if restarted:
            node.kernel.restart()
        resize(node, build, resized)
        node.play(strategy, throttled=False)
    node.play(OFF, throttled=False, count=2 * RELEASED)
    assert set(node.quotas.values()) == {30_000} and node.kernel.originals == {}


def resize(node: Node, build: Any, millis: int) -> None:
    """As the kubelet writes it."""
    node.pod = online(build, app=millis)
    for name in ("", "app") if node.quota() < millis * 100 else ("app", ""):
        node.kernel.held[node.knob(name)] = millis * 100
    for knob in [knob for knob in node.kernel.held if "burst" in knob.file]:
        node.kernel.held[knob] = min(node.kernel.held[knob], millis * 100)


_SECONDS = st.tuples(
    st.sampled_from([ON, OFF, BurstStrategy(BurstPolicy.AUTO, quota_pct=150, quota_seconds=5)]),
    st.booleans(),
    st.integers(0, 3000),
    st.integers(0, 4000),
    st.sampled_from([None, None, None, 300, 1000, 2000]),
    st.sampled_from([False, False, False, True]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(seconds=st.lists(_SECONDS, max_size=30), layout=st.sampled_from([V1, V2]))
def test_whatever_happens(build: Any, seconds: list[tuple[Any, ...]], layout: Layout) -> None:
    """Loads, switches, resizes and restarts in any order: nobody has less than was granted nor more than the share
    pool, no container more than its pod, and once it is off everything is as the kubelet wrote it."""
    node = Node(build, layout=layout)
    granted = 1000
    for strategy, throttled, millis, used, resized, restarted in seconds:
        node.kernel.used_millis = used
        if restarted:
            node.kernel.restart()
        if resized is not None:
            granted = resized
            resize(node, build, resized)
        node.play(strategy, throttled=throttled, millis=millis)
        assert granted * 100 <= node.quota("app") <= node.quota() <= 400_100
    node.play(OFF, throttled=False, count=2 * RELEASED)
    assert set(node.quotas.values()) == {granted * 100} and node.kernel.originals == {}

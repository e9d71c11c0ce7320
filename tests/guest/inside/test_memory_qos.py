"""Memory QoS on a real cgroup v2: what the kernel keeps of each value, that it slows down, and that all of it goes back."""

from __future__ import annotations

from pathlib import Path

from agent.core.limit.decide import LimitFacts, LimitMemory, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import MEMORY_QOS_FILES
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, NodeSample, Observation, Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from cgroup_fixtures.live import MOUNT
from model.pod.spec import Container
from model.qos import KubernetesQoS, MemoryQos, MemoryQosStrategy, QoSClass
from model.resources import MEMORY, ResourceVector
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.guest.inside.conftest import Pods
from tests.guest.inside.live_node import HOLD, MIB, eventually
from tests.pods import make_pod

REQUEST, LIMIT = ResourceVector({MEMORY: 16 * MIB + 1}), ResourceVector({MEMORY: 64 * MIB})


class Node:
    """One Burstable pod and the agent's decisions over it, tick by tick."""

    def __init__(self, pods: Pods, state: Path) -> None:
        self.layout = Layout(pods.root, 2)
        self.container = pods.burstable
        self.pod = self.container.rsplit("/", 1)[0]
        main = Container("main", REQUEST, LIMIT)
        qos = {"qos": QoSClass.LS, "qos_label": QoSClass.LS, "kubernetes_qos": KubernetesQoS.BURSTABLE}
        self.listed = make_pod("ns", "web", "u", requests=REQUEST, containers=(main,), **qos)
        self.executor = KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        self.memory = LimitMemory()
        self.at = 0.0

    def tick(self, strategy: MemoryQosStrategy) -> None:
        self.at += 1
        off = SuppressStrategy(enable=False), EvictionStrategy(enable=False)
        facts = LimitFacts(*off, (self.listed,), memory_qos=strategy)
        places = Places({"u": PodPlace(self.pod, {"main": self.container})})
        about = (self.memory, self.layout, places, facts)
        known = self.executor.readings(knobs_to_read(*about), claims_due(*about))
        there = CgroupSample(0, 0)
        seen = Observation(
            self.at,
            self.at,
            NodeSample(0, 0, 2),
            there,
            there,
            knobs=known.readings,
            pods={"u": CgroupSample(0, 64 * MIB)},  # as much as it may hold: tiers keep no more than is held
            listed=facts.pods,
            places=places,
        )
        self.memory, limits = decide_limits(self.memory, self.layout, seen, None, facts)
        ours = {knob: limit for knob, limit in limits.limits.items() if knob.file in MEMORY_QOS_FILES}
        outcomes = self.executor.apply(plan(ours, known.readings), 0)
        assert [outcome.error for outcome in outcomes if outcome.error] == []
        assert self.executor.idle(20)


def held(pods: Pods, node: Node) -> dict[tuple[str, str], bytes]:
    cgroups = (pods.root, node.layout.burstable, node.layout.best_effort, node.pod, node.container)
    files = ("memory.min", "memory.low", "memory.high", "memory.oom.group")
    return {(cgroup, file): pods.read(cgroup, file) for cgroup in cgroups for file in files}


def test_kept_slowed_down_and_given_back(pods: Pods, tmp_path: Path) -> None:
    """Half of 16 MiB and a byte is 8 MiB in whole pages, up to kubepods; whoever holds 32 MiB is slowed down."""
    node = Node(pods, tmp_path)
    before = held(pods, node)
    strategy = MemoryQosStrategy(ls=MemoryQos(min_pct=50, low_pct=75, throttling_pct=1, oom_kill_group=1))
    for _ in range(15):
        node.tick(strategy)
    changed = {key: text for key, text in held(pods, node).items() if text != before[key]}
    kept = [pods.root, node.layout.burstable, node.pod, node.container]
    slow = 16 * MIB + 48 * MIB // 100 // 4096 * 4096
    assert changed == {
        **{(cgroup, "memory.min"): b"%d\n" % (8 * MIB) for cgroup in kept},
        **{(cgroup, "memory.low"): b"%d\n" % (12 * MIB) for cgroup in kept},
        **{(cgroup, "memory.oom.group"): b"1\n" for cgroup in kept[2:]},
        (node.container, "memory.high"): b"%d\n" % slow,
    }
    assert node.memory.memory_qos.absent == ()
    pods.tree.run(node.container, HOLD)
    assert eventually(lambda: b"\nhigh 0\n" not in pods.read(node.container, "memory.events"))
    for _ in range(15):
        node.tick(MemoryQosStrategy())
    assert held(pods, node) == before


def test_restoring(pods: Pods, tmp_path: Path) -> None:
    """As on every file of ours."""
    node = Node(pods, tmp_path)
    pods.write(node.container, "memory.low", "max")
    before = held(pods, node)
    for _ in range(12):
        node.tick(MemoryQosStrategy(ls=MemoryQos(min_pct=50, low_pct=75)))
    assert held(pods, node) != before and pods.read(node.container, "memory.low") == b"max\n"
    node.executor.restore()
    assert held(pods, node) == before

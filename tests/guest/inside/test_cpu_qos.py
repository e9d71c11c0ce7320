"""CPU QoS and clamps on a real cgroup v2: what the kernel has is written and given back, what it lacks is named."""

from __future__ import annotations

from pathlib import Path

from agent.core.limit.decide import LimitFacts, LimitMemory, NodeLimits, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import CPU_QOS_FILES, RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, NodeSample, Observation, Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from cgroup_fixtures.live import MOUNT
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import CpuQos, CpuQosStrategy, KubernetesQoS, PriorityBand, QoSClass, UclampStrategy
from model.resources import BATCH_CPU, ResourceVector
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.guest.inside.conftest import Pods
from tests.pods import make_pod

HALF = ResourceVector({BATCH_CPU: 500})
MIN, MAX = "cpu.uclamp.min", "cpu.uclamp.max"
EVERYTHING = {
    "cpu_qos": CpuQosStrategy(ls=CpuQos(2), be=CpuQos(-1, idle=True)),
    "uclamp": UclampStrategy(ls_min_pct=20, be_max_pct=40),
}


def online() -> Pod:
    qos = {"qos": QoSClass.LS, "qos_label": QoSClass.LS, "kubernetes_qos": KubernetesQoS.BURSTABLE}
    return make_pod("ns", "web", "web", containers=(Container("main"),), **qos)


def batch() -> Pod:
    qos = {"qos": QoSClass.BE, "qos_label": QoSClass.BE, "band": PriorityBand.BATCH}
    kubernetes = KubernetesQoS.BEST_EFFORT
    return make_pod("ns", "job", "job", containers=(Container("main", HALF, HALF),), kubernetes_qos=kubernetes, **qos)


class Node:
    """An online and a batch pod, and the agent's decisions over them, tick by tick."""

    def __init__(self, pods: Pods, state: Path) -> None:
        self.layout = Layout(pods.root, 2)
        self.listed = (online(), batch())
        containers = {"web": pods.burstable, "job": pods.best_effort}
        self.places = Places(
            {uid: PodPlace(path.rsplit("/", 1)[0], {"main": path}) for uid, path in containers.items()}
        )
        self.executor = KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        self.memory, self.at = LimitMemory(), 0.0
        self.root = RootKnobs.of(self.layout).all

    def ticks(self, count: int, **strategies: object) -> NodeLimits:
        limits = NodeLimits({}, None)
        for _ in range(count):
            self.at += 1
            off = SuppressStrategy(enable=False), EvictionStrategy(enable=False)
            facts = LimitFacts(*off, self.listed, **strategies)  # type: ignore[arg-type]
            about = (self.memory, self.layout, self.places, facts)
            known = self.executor.readings(knobs_to_read(*about), claims_due(*about))
            there = CgroupSample(0, 0)
            seen = Observation(
                self.at,
                self.at,
                NodeSample(0, 0, 2),
                there,
                there,
                knobs=known.readings,
                listed=facts.pods,
                places=self.places,
            )
            self.memory, limits = decide_limits(self.memory, self.layout, seen, None, facts)
            ours = {knob: limit for knob, limit in limits.limits.items() if knob not in self.root}
            outcomes = self.executor.apply(plan(ours, known.readings), 0)
            assert [outcome.error for outcome in outcomes if outcome.error] == []
            assert self.executor.idle(20)
        return limits


def held(pods: Pods, node: Node) -> dict[tuple[str, str], bytes]:
    """Of all that is there."""
    tiers = (pods.root, node.layout.burstable, node.layout.best_effort)
    below = [path for place in node.places.pods.values() for path in (place.path, *place.containers.values())]
    files = (*sorted(CPU_QOS_FILES), "cpu.idle", "cpu.weight")
    return {
        (cgroup, file): pods.read(cgroup, file)
        for cgroup in (*tiers, *below)
        for file in files
        if (MOUNT / cgroup.lstrip("/") / file).exists()
    }


def test_on_and_off(pods: Pods, tmp_path: Path) -> None:
    """The batch pod is idle, clamps hold up to kubepods where the kernel has any; then all texts are as they were."""
    node = Node(pods, tmp_path)
    node.ticks(2)
    before = held(pods, node)
    limits = node.ticks(15, **EVERYTHING)
    there = {file for file in CPU_QOS_FILES if (MOUNT / pods.root.lstrip("/") / file).exists()}
    assert set(limits.absent_files) == CPU_QOS_FILES - there
    changed = {key: text for key, text in held(pods, node).items() if text != before[key]}
    job, web = node.places.pods["job"].path, node.places.pods["web"].path
    assert changed.pop((job, "cpu.idle")) == b"1\n"
    assert changed.pop((job, "cpu.weight")) in (b"0\n", b"1\n"), "Linux 6.1, and 7.3"
    tiers = (pods.root, node.layout.burstable, web, pods.burstable)
    clamps = {(cgroup, MIN): b"20.00\n" for cgroup in tiers} | {(node.layout.best_effort, MAX): b"40.00\n"}
    assert changed == {key: text for key, text in clamps.items() if key[1] in there}
    node.ticks(15)
    assert held(pods, node) == before


def test_restoring(pods: Pods, tmp_path: Path) -> None:
    """As on every file of ours, the weights too that the kernel forgot."""
    node = Node(pods, tmp_path)
    before = held(pods, node)
    node.ticks(15, **EVERYTHING)
    assert held(pods, node) != before
    node.executor.restore()
    assert held(pods, node) == before

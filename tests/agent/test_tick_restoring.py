"""Whatever strategies are on, and wherever the agent dies: switching off and `--restore` bring every text back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.observe.knob_table import TABLE, Form, Place, Strategy, owner_of, place_of, row_of
from agent.core.observe.knobs import OOM_SCORE_FILE, quota_knob, text_of
from agent.core.observe.observation import Knob
from agent.files.statefile import originals_in
from agent.settings import AgentSettings
from model.nodesettings import NodeSettings
from model.pod.colocation import OomScores
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import CpuQos, CpuQosStrategy, MemoryQos, MemoryQosStrategy, UclampStrategy
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, ResourceVector
from model.strategy import BurstPolicy, BurstStrategy, EvictionStrategy, SuppressPolicy, SuppressStrategy
from model.topology import Processor
from tests.agent.playing import KilledError, Scenario
from tests.pods import with_fields

TICKS = 3
RELEASING_TICKS = 12
"""Claims are made in one tick of ten."""
ON = NodeSettings(
    suppress=SuppressStrategy(threshold_pct=20, policy=SuppressPolicy.CFS_QUOTA, cpu_idle=True),
    eviction=EvictionStrategy(memory_threshold_pct=95),
    burst=BurstStrategy(BurstPolicy.AUTO),
    memory_qos=MemoryQosStrategy(ls=MemoryQos(min_pct=50, low_pct=80)),
    cpu_qos=CpuQosStrategy(ls=CpuQos(2), be=CpuQos(-1)),
    uclamp=UclampStrategy(ls_min_pct=20, be_max_pct=40),
    oom_scores=True,
)
CPUSET = msgspec.structs.replace(ON, suppress=SuppressStrategy(threshold_pct=20, policy=SuppressPolicy.CPUSET))
EVERYTHING: Mapping[str, NodeSettings] = {"quota and idle": ON, "CPU lists": CPUSET}
SCENARIOS = ("v1_recorded", "v2_recorded", "v2_systemd_recorded")
# Settings by which the strategies are off, all others as they were.
OFF: Mapping[Strategy, NodeSettings] = {
    Strategy.CPU_IDLE: msgspec.structs.replace(
        ON, suppress=SuppressStrategy(threshold_pct=20, policy=SuppressPolicy.CFS_QUOTA)
    ),
    Strategy.MEMORY_HEADROOM: msgspec.structs.replace(ON, eviction=EvictionStrategy(enable=False)),
    Strategy.PROCESS_LIMITS: msgspec.structs.replace(
        ON,
        suppress=SuppressStrategy(
            threshold_pct=20, policy=SuppressPolicy.CFS_QUOTA, cpu_idle=True, pids_pct=None, pod_cgroups=None
        ),
    ),
    Strategy.CPU_BURST: msgspec.structs.replace(ON, burst=BurstStrategy()),
    Strategy.MEMORY_QOS: msgspec.structs.replace(ON, memory_qos=MemoryQosStrategy()),
    Strategy.CPU_QOS: msgspec.structs.replace(ON, cpu_qos=CpuQosStrategy()),
    Strategy.UCLAMP: msgspec.structs.replace(ON, uclamp=UclampStrategy()),
    Strategy.OOM_SCORES: msgspec.structs.replace(ON, oom_scores=False),
}
_FOUND = {"cpu.shares": "1024", "cpu.weight": "100", "cpu.cfs_period_us": "100000", "cpuset.cpus": "0-1"}
"""What stands in files without a neutral value."""
_TEXTS = {Form.QUOTA: "max 50000", Form.BYTES_V1: str(1 << 40)}
"""Of the same value as `max 100000`, and another text; an amount, since only a kernel makes a number of `-1`."""
_CLAMPS = {"cpu.uclamp.min": "0.00", "cpu.uclamp.max": "max"}
_LIMIT_US = 50_000
"""Half a CPU, as the kubelet writes it for these limits."""


class Node:
    """A scenario with a file for every row of the table in every cgroup, and everything switched on."""

    def __init__(self, name: str, root: Path, build: Any, force: NodeSettings) -> None:
        self.played = Scenario(name, root, build, AgentSettings())
        self.processes: dict[str, int] = {}
        facts = self.played.cluster.now
        pods = tuple(_with_limits(pod) for pod in facts.pods or ())
        self.played.cluster.now = msgspec.structs.replace(facts, pods=pods)
        self.knobs = tuple(self._furnish())
        self.before = self.texts()
        self.settings(force)

    def _furnish(self) -> Iterable[Knob]:
        node, layout = self.played, self.played.layout
        tree = node.cgroups if layout.version == 2 else node.cgroups / "cpu"
        cgroups = sorted(f"/{path.parent.relative_to(tree)}" for path in tree.rglob("cpu.stat"))
        for cgroup in cgroups:
            if place_of(layout, cgroup) in (Place.ONLINE_POD, Place.ONLINE_CONTAINER):
                quota = quota_knob(layout, cgroup)
                node.executor.path(quota).write_text(f"{text_of(quota, _LIMIT_US)}\n")
            for knob in (Knob(cgroup, row.controller, row.file) for row in TABLE if row.version == layout.version):
                self._make(knob)
                yield knob

    def _make(self, knob: Knob) -> None:
        path = self.file(knob)
        path.parent.mkdir(parents=True, exist_ok=True)
        if knob.file == OOM_SCORE_FILE:
            self.played.executor.path(knob).with_name("cgroup.procs").write_text(f"{path.parent.name}\n")
        if not path.exists() or row_of(knob).form is Form.BYTES_V1:
            path.write_text(f"{_found(knob)}\n")

    def file(self, knob: Knob) -> Path:
        """A score is of one process of its cgroup."""
        if knob.file != OOM_SCORE_FILE:
            return self.played.executor.path(knob)
        process = self.processes.setdefault(knob.cgroup, 1000 + len(self.processes))
        return self.played.root / f"proc/{process}/oom_score_adj"

    def settings(self, force: NodeSettings) -> None:
        cpus = tuple(Processor(cpu, cpu, 0, 0) for cpu in range(2))
        cluster = self.played.cluster
        cluster.now = msgspec.structs.replace(cluster.now, settings=force, processors=cpus)

    def texts(self) -> dict[Knob, str]:
        return {knob: self.file(knob).read_text().strip() for knob in self.knobs}

    def changed(self) -> set[Strategy | None]:
        """Owners of files that do not say what they said."""
        now = self.texts()
        return {owner_of(self.played.layout, knob) for knob in self.knobs if now[knob] != self.before[knob]}


def _with_limits(pod: Pod) -> Pod:
    """Each container asks for what is lent, or has a limit, and a score of its own."""
    batch = ResourceVector({BATCH_CPU: 200, BATCH_MEMORY: 64 << 20})
    amounts = batch if pod.best_effort else ResourceVector({CPU: 500, MEMORY: 64 << 20})
    containers = tuple(Container(name, amounts, amounts) for name in pod.status.container_ids)
    requests = pod.spec.requests if pod.best_effort else pod.spec.requests.maximum(_times(amounts, len(containers)))
    return with_fields(pod, containers=containers, requests=requests, oom_scores=OomScores(300))


def _times(amounts: ResourceVector, number: int) -> ResourceVector:
    return ResourceVector({name: number * amounts[name] for name in amounts})


def _found(knob: Knob) -> str:
    row = row_of(knob)
    if row.form in _TEXTS:
        return _TEXTS[row.form]
    found = {**_FOUND, **_CLAMPS}
    return found[row.file] if row.file in found else text_of(knob, row.neutral or 0)


@pytest.mark.parametrize("force", EVERYTHING.values(), ids=EVERYTHING)
@pytest.mark.parametrize("name", SCENARIOS)
def test_restored(tmp_path: Path, build: Any, name: str, force: NodeSettings) -> None:
    """Every text of every file of the table."""
    node = Node(name, tmp_path, build, force)
    for _ in range(TICKS):
        node.played.wait()
    assert node.changed() >= {Strategy.BATCH_RESOURCES, Strategy.PROCESS_LIMITS, Strategy.CPU_SUPPRESS}
    node.played.executor.restore()
    assert node.texts() == node.before


@pytest.mark.parametrize(("strategy", "off"), OFF.items(), ids=OFF)
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_strategy_is_switched_off(
    tmp_path: Path, build: Any, name: str, strategy: Strategy, off: NodeSettings
) -> None:
    """Its files say what they said and are forgotten; those of others stay."""
    node = Node(name, tmp_path, build, ON)
    for _ in range(TICKS):
        node.played.wait()
    before = node.changed()
    node.settings(off)
    for _ in range(RELEASING_TICKS):
        node.played.wait()
    assert node.changed() == before - {strategy}
    remembered = {owner_of(node.played.layout, knob) for knob in originals_in(tmp_path / "state/agent.json")}
    assert strategy not in remembered and before - {strategy} <= remembered


def test_everything_that_can_be_switched_off_is(tmp_path: Path, build: Any) -> None:
    """Each strategy whose files are given back is a case above, and writes something in some scenario."""
    assert set(OFF) == {strategy for strategy in Strategy if not strategy.stays}
    written = set()
    for name in SCENARIOS:
        node = Node(name, tmp_path / name, build, ON)
        for _ in range(TICKS):
            node.played.wait()
        written |= node.changed()
    assert set(OFF) <= written


@pytest.mark.parametrize(("name", "force"), [("v1_recorded", CPUSET), ("v2_recorded", ON)], ids=["v1", "v2"])
def test_killed_after_each_write(tmp_path: Path, build: Any, name: str, force: NodeSettings) -> None:
    """While everything is switched on, and while it is switched off again: no file holds what is neither of before nor
    of the plan, the next agent takes over, and restoring brings every text back."""
    for writes in count():
        node = Node(name, tmp_path / str(writes), build, force)
        node.played.refusing.writes_left = writes
        died = False
        try:
            for _ in range(TICKS):
                node.played.wait()
            node.settings(
                NodeSettings(
                    suppress=SuppressStrategy(pids_pct=None, pod_cgroups=None), eviction=EvictionStrategy(enable=False)
                )
            )
            for _ in range(RELEASING_TICKS):
                node.played.wait()
        except KilledError:
            died = True
            plan, now = node.played.refusing.planned, node.texts()
            for knob in {write.knob for write in plan}:
                steps = [write for write in plan if write.knob == knob]
                held = node.played.executor.read(knob)
                assert held in {steps[0].previous, *(write.value for write in steps)}, (writes, knob, now[knob])
        node.played.start()
        node.played.wait()
        node.played.executor.restore()
        assert node.texts() == node.before, writes
        while Scenario.opened:  # of as many lives no machine has the descriptors
            Scenario.opened.pop().close()
        if not died:
            break
    assert writes > 2 * TICKS

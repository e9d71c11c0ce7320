"""The tick end to end, over recorded files, with a fake cluster, brake and clock: what it decides and writes."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agent.core.brake import BrakePlan, Cut
from agent.core.layout import KubepodsLayout
from agent.core.plan import Write
from agent.edge.cgroupfs import CgroupReader
from agent.edge.executor import KnobExecutor, Originals
from agent.edge.host import HostReader
from agent.observer import NodeObserver
from agent.ports import ClusterFacts, TickResult
from agent.tick import Tick
from model.explain import sentence
from model.reason import Reason
from model.strategy import ColocationStrategy, SuppressStrategy

FIXTURES = Path(__file__).parents[2] / "cgroup_fixtures"


class FakeCluster:
    """Facts a test sets."""

    def __init__(self, facts: ClusterFacts) -> None:
        self.now = facts

    def facts(self) -> ClusterFacts:
        return self.now


class FakeBrake:
    """Remembers how it was armed; cuts are given by the test."""

    def __init__(self) -> None:
        self.plan: BrakePlan | None = None
        self.cuts: tuple[Cut, ...] = ()

    def arm(self, plan: BrakePlan | None) -> None:
        self.plan = plan

    def drain(self) -> tuple[Cut, ...]:
        taken, self.cuts = self.cuts, ()
        return taken


class Scenario:
    """One node played back: `play` lays the next frame over the tree and runs a tick."""

    def __init__(self, name: str, root: Path, build: Any) -> None:
        self.folder = FIXTURES / name
        self.plan = tomllib.loads((self.folder / "scenario.toml").read_text())
        self.root = root
        self._frame = -1
        self._now = 0.0
        self._lay()
        node = build.node(self.plan["node"]["cpu_millis"], self.plan["node"]["memory_bytes"])
        pods = tuple(self._pod(build, entry) for entry in self.plan["pods"])
        self.cluster = FakeCluster(ClusterFacts(node, pods, ColocationStrategy(), SuppressStrategy()))
        self.brake = FakeBrake()
        self.start()

    def start(self) -> None:
        """A new agent on the tree as it is; the state file survives."""
        if hasattr(self, "originals"):
            self.originals.close()
        cgroups = self.root / "sys/fs/cgroup"
        self.originals = Originals(self.root / "state" / "agent.json")
        self.executor = KnobExecutor(cgroups, self.originals, lambda: self._now)
        layout = KubepodsLayout("/kubepods")
        host = HostReader(self.root / "proc")
        observer = NodeObserver(layout, CgroupReader(cgroups), host, lambda: (1000.0 + self._now, self._now))
        self.results: list[TickResult] = []
        self.tick = Tick(layout, self.cluster, observer, self.executor, self.brake, (self,))

    def take(self, result: TickResult) -> None:
        self.results.append(result)

    def play(self) -> TickResult:
        if self._frame >= 0:
            self._lay()
        else:
            self._frame = 0
        return self.tick.run()

    def file(self, name: str) -> Path:
        return self.root / "sys/fs/cgroup" / name

    @property
    def quota(self) -> int:
        return int(self.file("cpu/kubepods/besteffort/cpu.cfs_quota_us").read_text())

    def _lay(self) -> None:
        number = self._frame + 1 if self._frame >= 0 else 0
        frame = self.folder / f"{number:02d}"
        for source in sorted(path for path in frame.rglob("*") if path.is_file()):
            target = self.root / source.relative_to(frame)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        if self._frame >= 0:
            self._frame = number
        self._now = self.plan["frames_seconds"][number]

    @staticmethod
    def _pod(build: Any, entry: dict[str, Any]) -> Any:
        if entry["class"] == "BE":
            return build.batch(entry["name"], batch_cpu=entry["batch_cpu_millis"])
        return build.pod(entry["name"], cpu=entry["cpu_millis"])


@pytest.fixture
def surge(tmp_path: Path, build: Any) -> Scenario:
    return Scenario("v1_surge", tmp_path, build)


def test_the_surge_scenario_matches_its_golden_file(surge: Scenario) -> None:
    """Every decision of every tick, in words, equals what was read and agreed on."""
    lines, quiet = [], ("kubernetes.io/batch-memory", "cpu.cfs_period_us")
    for number in range(len(surge.plan["frames_seconds"])):
        result = surge.play()
        decided = (*result.cuts, *result.reclaimable, *result.limits.decisions.values())
        lines += [f"{number}: {sentence(d)}" for d in decided if d.name not in quiet]
        lines += [f"{number}: wrote {o.write.value} to {o.write.knob.file}{o.error}" for o in result.outcomes]
    assert "\n".join(lines) + "\n" == (surge.folder / "golden.txt").read_text()


def test_terms_sum_to_what_the_file_holds(surge: Scenario) -> None:
    """After each tick the quota decision is exactly the kernel's value."""
    for _ in surge.plan["frames_seconds"][1:]:
        decision = surge.play().limits.decisions[surge.tick._knobs.quota]
        assert decision.value == sum(term.value for term in decision.terms) == surge.quota


def test_a_restart_goes_on_from_the_real_knobs(surge: Scenario) -> None:
    """kill -9: the new agent's first tick writes nothing, and before it has measured nothing is raised."""
    for _ in range(3):
        surge.play()
    before = surge.quota
    surge.start()
    first = surge.play()
    assert first.outcomes == () and surge.quota == before
    assert first.limits.decisions[surge.tick._knobs.quota].reason is Reason.NODE_METRICS_MISSING
    surge.play()
    assert surge.quota <= before


def test_restore_puts_the_originals_back(surge: Scenario) -> None:
    """Also after a restart: the state file knows the values from before the first write."""
    surge.play()
    surge.play()
    assert surge.quota > 0
    surge.start()
    assert surge.executor.restore() == 2
    assert surge.quota == -1
    assert surge.file("cpu/kubepods/besteffort/cpu.shares").read_text() == "1024"
    assert not (surge.root / "state" / "agent.json").exists()


def test_a_foreign_reset_is_undone_and_a_tighter_value_kept(surge: Scenario) -> None:
    """systemd's daemon-reload resets limits: ours come back at the next tick; somebody's tighter one stays."""
    surge.play()
    surge.play()
    ours = surge.quota
    knob = surge.file("cpu/kubepods/besteffort/cpu.cfs_quota_us")
    knob.write_text("-1")
    result = surge.play()
    assert surge.quota <= ours
    assert result.limits.decisions[surge.tick._knobs.quota].reason is Reason.FOREIGN_WRITER_LOOSENED
    knob.write_text("3000")
    result = surge.play()
    assert surge.quota == 3000
    assert result.limits.decisions[surge.tick._knobs.quota].reason is Reason.FOREIGN_WRITER_TIGHTER


def test_a_raise_decided_before_a_cut_is_dropped(surge: Scenario) -> None:
    """The brake cuts between observation and write: the tick's raise must not undo it."""
    surge.play()
    surge.play()
    knob = surge.tick._knobs.quota
    readings = surge.executor.readings((knob,))
    assert surge.executor.lower(knob, 5000) == readings.readings[knob].kernel
    decision = surge.results[-1].limits.decisions[knob]
    outcome = surge.executor.apply((Write(knob, 150_000, 5000, decision),), readings.brake_cuts)[0]
    assert outcome.dropped and surge.quota == 5000
    narrower = surge.executor.apply((Write(knob, 80_000, 150_000, decision),), readings.brake_cuts)[0]
    assert narrower.dropped and surge.quota == 5000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cpuacct/kubepods/cpuacct.usage", "garbage"),
        ("memory/kubepods/besteffort/memory.stat", "total_active_anon 5\n"),
        ("cpu/kubepods/besteffort/cpu.cfs_quota_us", "max\n"),
    ],
)
def test_an_unreadable_root_file_holds_the_ceiling(surge: Scenario, name: str, text: str) -> None:
    """Not one write gives more, lending says why it stopped or goes on, and the tick does not fail."""
    surge.play()
    surge.play()
    held = surge.quota
    surge._lay()
    surge.file(name).write_text(text)
    result = surge.tick.run()
    assert all(not outcome.write.widens for outcome in result.outcomes)
    if "quota" in name:
        assert result.limits.decisions[surge.tick._knobs.quota].reason is Reason.KNOB_UNREADABLE
    else:
        assert surge.quota == held and result.usage is None
        assert {d.value for d in result.reclaimable} == {0} and result.degraded_reason == "NodeMetricsMissing"


def test_an_unreadable_pod_counts_with_its_request(surge: Scenario) -> None:
    """One broken cgroup file costs that pod's measurement, everything else goes on."""
    surge.play()
    surge.play()
    surge._lay()
    surge.file("cpuacct/kubepods/burstable/poduid-web/cpuacct.usage").write_text("?")
    result = surge.tick.run()
    assert result.usage is not None and result.reclaimable[0].reason is Reason.COMPUTED
    lost = surge.file("cpuacct/kubepods/besteffort/poduid-job/cpuacct.usage")
    shutil.rmtree(lost.parent)
    assert surge.play().usage is not None


def test_unknown_pods_lend_nothing_but_limits_hold(surge: Scenario) -> None:
    """Suppression needs no API server: cgroup counters alone keep the ceiling right."""
    surge.cluster.now = ClusterFacts(surge.cluster.now.node, None, ColocationStrategy(), SuppressStrategy())
    surge.play()
    result = surge.play()
    assert {d.reason for d in result.reclaimable} == {Reason.PODS_UNKNOWN}
    assert surge.quota > 0 and surge.brake.plan is not None

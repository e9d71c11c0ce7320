"""A journal replayed decides what the agent decided, to the last term; with other settings, what it would have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.limit.brake import Cut
from agent.core.observe.prediction import PredictionPolicy
from agent.edge.journal import JournalFile
from agent.ports import TickResult
from agent.replay import Replayed, replay
from agent.report.journal import JournalHead
from agent.settings import AgentSettings
from model.fault import ConfigurationFault
from model.reason import Reason
from model.resources import BATCH_CPU, MID_CPU
from model.strategy import ColocationStrategy, SuppressStrategy
from tests.agent.playing import Scenario

LEARNING = AgentSettings(prediction=PredictionPolicy(training_interval_seconds=10, cold_start_seconds=0))


class Recorded(Scenario):
    """A scenario that keeps a journal."""

    def __init__(
        self,
        root: Path,
        build: Any,
        settings: AgentSettings | None = None,
        name: str = "v1_surge",
        largest: int = 1 << 30,
    ) -> None:
        super().__init__(name, root / "node", build, settings)
        self.path = root / "journal"
        self.largest = largest
        self.begin_again()

    def begin_again(self) -> None:
        """A new file, as after a restart that lost nothing; the one before is FILE.1."""
        self.journal = JournalFile(
            self.path, self.largest, lambda: JournalHead(self.layout, self.settings, self.tick.state)
        )
        self.sinks = (self.journal,)
        self.journal.begin()

    def lines(self) -> list[bytes]:
        """FILE.1 and FILE, in order."""
        files = (self.path.with_name("journal.1"), self.path)
        return [line for file in files if file.exists() for line in file.read_bytes().splitlines(keepends=True)]

    def replayed(self, other: AgentSettings | None = None) -> list[Replayed]:
        return list(replay(self.lines(), "journal", other))


def assert_same(found: Iterable[Replayed], results: list[TickResult]) -> None:
    """Identical to the record, and both to what was really decided."""
    told = list(found)
    assert [tick.identical for tick in told] == [True] * len(results)
    assert [tick.recorded for tick in told] == [result.decisions for result in results]
    assert [tick.result.decisions for tick in told] == [result.decisions for result in results]


@pytest.mark.parametrize("name", ["v1_surge", "v1_recorded", "v2_recorded", "v2_systemd_recorded"])
def test_every_tick_of_a_scenario(tmp_path: Path, build: Any, name: str) -> None:
    """Both cgroup versions, both drivers, real kernels' files and made ones."""
    node = Recorded(tmp_path, build, name=name)
    results = node.play_all()
    assert results[-1].usage is not None and results[-1].lending.degraded is None
    assert_same(node.replayed(), results)
    assert [tick.result.outcomes for tick in node.replayed()] == [result.outcomes for result in results]


def test_across_a_rotation(tmp_path: Path, build: Any) -> None:
    """The second file alone decides the same, from the state in its head; so does one after the other."""
    node = Recorded(tmp_path, build, LEARNING, largest=42_000)
    results = node.play_all()
    assert node.path.with_name("journal.1").exists()
    newest = node.path.read_bytes().splitlines(keepends=True)
    ticks = len(newest) - 1
    assert 0 < ticks < len(results)
    assert_same(replay(newest, "journal"), results[-ticks:])
    assert_same(node.replayed(), results)


def test_with_a_prediction_that_learns(tmp_path: Path, build: Any) -> None:
    """Peaks are trained every ten seconds: mid resources come from the very same ones in the replay."""
    node = Recorded(tmp_path, build, LEARNING, largest=160_000)
    for second in range(45):
        node.linger(1, web=400 if second < 25 else 1200, job=300)
    mid = [d.value for result in node.results for d in result.lending.reclaimable if d.name == MID_CPU]
    # web asks for 1200m: its peak of about 400m plus 10 % leaves the rest, one of 1200m nothing.
    assert mid[5] == 0 < mid[20] < 800 and mid[-1] == 0
    kept = sum(b'"line":"tick"' in line for line in node.lines())
    assert 20 < kept < 45
    assert_same(node.replayed(), node.results[-kept:])


def test_with_brake_cuts_and_a_dropped_raise(tmp_path: Path, build: Any) -> None:
    """Cuts are decisions of the tick that drained them, and hold raises back after it."""
    node = Recorded(tmp_path, build)
    for _ in range(2):
        node.play()
    plan = node.brake.plan
    assert plan is not None
    held = node.executor.lower(node.knob, 20_000)
    assert held == 190_000
    node.brake.cuts = (Cut(plan, 1001.5, 1.5, held, 20_000, 160_000),)
    node.play()
    assert [decision.reason for decision in node.results[-1].cuts] == [Reason.BRAKE]
    assert node.results[-1].limits.decisions[node.knob].reason is Reason.BRAKE
    for _ in range(3):
        node.play()
    assert_same(node.replayed(), node.results)


def test_with_everything_that_goes_wrong(tmp_path: Path, build: Any) -> None:
    """Pods unknown at first and of unknown age, a vanished pod, a broken root file, changed settings, a problem."""
    node = Recorded(tmp_path, build)
    known = node.cluster.now
    node.cluster.now = msgspec.structs.replace(known, pods=None, settings_known=False, pods_age_seconds=float("inf"))
    node.play()
    node.cluster.now = known
    node.play()
    node.file("cpuacct/kubepods/besteffort/poduid-job/cpuacct.usage").unlink()
    node.tick.run()
    node.play()
    node.file("cpuacct/kubepods/cpuacct.usage").write_text("garbage")
    node.tick.run()
    off = msgspec.structs.replace(known.settings, suppress=SuppressStrategy(enable=False))
    node.cluster.now = msgspec.structs.replace(known, settings=off, problem="NodeSLO n: x")
    node.play()
    node.cluster.now = msgspec.structs.replace(known, node=None, pods=())
    node.play()
    assert_same(node.replayed(), node.results)


def test_a_tampered_decision_is_told(tmp_path: Path, build: Any) -> None:
    """The one tick that differs, with what was recorded and what is decided."""
    node = Recorded(tmp_path, build)
    node.play_all()
    lines = node.lines()
    # Among what may be lent; what is offered of it comes after that, and stays as it was.
    assert lines[2].count(b'"value":-400,') == 1 and lines[2].count(b'"value":600,') == 2
    lines[2] = lines[2].replace(b'"value":-400,', b'"value":-399,').replace(b'"value":600,', b'"value":601,', 1)
    found = list(replay(lines, "journal"))
    assert [tick.identical for tick in found] == [True, False, True, True, True, True]
    batch = next(d for d in found[1].recorded if d.name == BATCH_CPU)
    assert batch.value == 601 and found[1].result.lending.reclaimable[0].value == 600


def test_with_other_settings(tmp_path: Path, build: Any) -> None:
    """A lower threshold lends less, and a tighter ceiling is decided from what the kernel held; terms still sum."""
    node = Recorded(tmp_path, build)
    results = node.play_all()
    other = AgentSettings(
        colocation=ColocationStrategy(cpu_reclaim_threshold_pct=50),
        suppress=SuppressStrategy(threshold_pct=80),
    )
    found = node.replayed(other)
    # The first tick knows no usage yet, whatever the settings.
    assert [tick.identical for tick in found] == [True] + [False] * 5
    # 2000m - 50 % - system 200m - web 400m, 667m, 800m, 880m
    assert [tick.result.lending.reclaimable[0].value for tick in found] == [0, 400, 400, 133, 0, 0]
    # 200,000 us x 80 % - system 20,000 - online 40,000, then 120,000
    ceilings = [tick.result.limits.decisions[node.knob].value for tick in found]
    assert ceilings == [-1, 100_000, 100_000, 20_000, 20_000, 20_000]
    for tick in found:
        assert tick.recorded and all(d.value == sum(t.value for t in d.terms) for d in tick.result.decisions)
    assert [tick.recorded for tick in found] == [result.decisions for result in results]


def test_with_other_half_lives_peaks_are_learned_again(tmp_path: Path, build: Any) -> None:
    """Weights made with 12 h say nothing beside those made with 48 h; what the journal itself taught stays."""
    policy = msgspec.structs.replace(LEARNING.prediction, cold_start_seconds=15)
    node = Recorded(tmp_path, build, AgentSettings(prediction=policy))
    for _ in range(30):
        node.linger(1, web=400)
    node.begin_again()
    for _ in range(20):
        node.linger(1, web=400)
    newest = node.path.read_bytes().splitlines(keepends=True)
    slower = AgentSettings(prediction=msgspec.structs.replace(policy, cpu_half_life_seconds=172_800.0))

    def leaves_room(lines: list[bytes], other: AgentSettings) -> list[bool]:
        found = [tick.result.prediction for tick in replay(lines, "journal", other)]
        return [one is not None and one.prod_reclaimable.cpu_millis > 0 for one in found]

    # Trained at once, the models count when they are more than 15 s old.
    assert leaves_room(newest, node.settings) == [True] * 20
    assert leaves_room(newest, slower) == [False] * 16 + [True] * 4
    assert leaves_room(node.lines(), slower)[30:] == [True] * 20


def test_an_empty_journal(tmp_path: Path, build: Any) -> None:
    """Nothing was decided; a file that is none is one fault."""
    assert list(replay([], "journal")) == []
    assert Recorded(tmp_path, build).replayed() == []
    with pytest.raises(ConfigurationFault, match="journal line 1: is no journal line"):
        list(replay([b"{}\n"], "journal"))

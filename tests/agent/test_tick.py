"""The tick end to end, over recorded files, with a fake cluster, brake and clock: what it decides and writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.core.limit.online_stalls import StallMemory
from agent.core.limit.plan import Write
from agent.core.limit.shrink import PodLook, ReclaimAnswer, ReclaimOrder
from agent.core.limit.watch import MemorySigns
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.observation import Missing
from agent.core.observe.prediction import PredictionPolicy
from agent.edge.cgroupfs import CgroupReader
from agent.settings import AgentSettings, Mode
from model.explain import OFFERED, sentence
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_MEMORY, MID_CPU, MID_MEMORY
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.agent.playing import Scenario

GIB = 1 << 30
LEARNING = PredictionPolicy(training_interval_seconds=10, cold_start_seconds=0)


@pytest.fixture
def surge(tmp_path: Path, build: Any) -> Scenario:
    """With a threshold of its own, so that all online use lowers the ceiling."""
    return Scenario("v1_surge", tmp_path, build, AgentSettings(suppress=SuppressStrategy(threshold_pct=99)))


def test_the_surge_scenario_matches_its_golden_file(surge: Scenario) -> None:
    """Every decision of every tick, in words, equals what was read and agreed on."""
    lines, quiet = [], (BATCH_MEMORY, MID_CPU, MID_MEMORY, "cpu.cfs_period_us")
    for number, result in enumerate(surge.play_all()):
        lines += [f"{number}: {sentence(d)}" for d in result.decisions if d.name not in quiet]
        lines += [f"{number}: wrote {o.write.value} to {o.write.knob.file}{o.error}" for o in result.outcomes]
    assert "\n".join(lines) + "\n" == (surge.playback.folder / "golden.txt").read_text()


def test_terms_sum_to_what_the_file_holds(surge: Scenario) -> None:
    """After each tick the quota decision is exactly the kernel's value."""
    for _ in surge.playback.frames[1:]:
        decision = surge.play().limits.decisions[surge.knob]
        assert decision.value == sum(term.value for term in decision.terms) == surge.quota


def test_whom_the_last_tick_named_is_watched(surge: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brake's pods are read in each pass, whoever's turn it is."""
    seen, read = list[Watched](), CgroupReader.read
    monkeypatch.setattr(
        CgroupReader, "read", lambda reader, watched=NO_MORE: seen.append(watched) or read(reader, watched)
    )
    surge.play()
    limits = msgspec.structs.replace(surge.tick.state.limits, stalls=StallMemory(heard=("/kubepods/podx",)))
    surge.tick.state = msgspec.structs.replace(surge.tick.state, limits=limits)
    surge.play()
    assert [tuple(watched.waiting) for watched in seen] == [(), ("/kubepods/podx",)]


@pytest.mark.parametrize("mode", Mode)
def test_what_is_offered_is_a_decision_of_the_tick(tmp_path: Path, build: Any, mode: Mode) -> None:
    """With its terms among those of the tick; an agent that observes offers what running pods request, and says why."""
    for result in Scenario("v1_surge", tmp_path, build, AgentSettings(mode=mode)).play_all():
        offered = [d for d in result.decisions if d.policy == OFFERED]
        assert offered == list(result.offered.decisions or ()) and offered[0].value == 300
        assert (offered[0].reason is Reason.OBSERVING) == (mode is Mode.OBSERVE)


@pytest.mark.parametrize("mode", Mode)
def test_only_orders_that_are_sent_are_remembered(tmp_path: Path, build: Any, mode: Mode) -> None:
    """An agent that observes says each time who would go."""
    eviction = EvictionStrategy(memory_threshold_pct=2, memory_lower_pct=0)
    node = Scenario("v1_surge", tmp_path, build, AgentSettings(mode=mode, eviction=eviction))
    told = [result for result in node.play_all() if result.evictions.requests]
    sends = mode is Mode.ENFORCE
    assert told and (len(told) > 1) == (not sends)
    assert all(bool(result.evicting.record.pending) == sends for result in told)


def test_a_restart_goes_on_from_the_real_knobs(surge: Scenario) -> None:
    """kill -9: the new agent's first tick writes nothing, and before it has measured nothing is raised."""
    for _ in range(3):
        surge.play()
    before = surge.quota
    surge.start()
    first = surge.play()
    assert first.outcomes == () and surge.quota == before
    assert first.limits.decisions[surge.knob].reason is Reason.NODE_METRICS_MISSING
    surge.play()
    assert surge.quota <= before


def test_restore_puts_the_originals_back(surge: Scenario) -> None:
    """Also after a restart: the state file knows the values from before the first write."""
    surge.play()
    surge.play()
    assert surge.quota > 0
    surge.start()
    assert surge.executor.restore().changed == 2
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
    assert result.limits.decisions[surge.knob].reason is Reason.FOREIGN_WRITER_LOOSENED
    knob.write_text("3000")
    result = surge.play()
    assert surge.quota == 3000
    assert result.limits.decisions[surge.knob].reason is Reason.FOREIGN_WRITER_TIGHTER


def test_a_raise_decided_before_a_cut_is_dropped(surge: Scenario) -> None:
    """The brake cuts between observation and write: the tick's raise must not undo it."""
    surge.play()
    surge.play()
    knob = surge.knob
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
    surge.lay()
    surge.file(name).write_text(text)
    result = surge.tick.run()
    assert all(not outcome.write.widens for outcome in result.outcomes)
    if "quota" in name:
        assert result.limits.decisions[surge.knob].reason is Reason.KNOB_UNREADABLE
    else:
        assert surge.quota == held and result.usage is not None and result.degraded_reason == ""


def test_a_root_file_that_stays_unreadable_ends_lending(surge: Scenario) -> None:
    """Ten passes live on the last figures; after that nothing is lent, and the ceiling stays where it was."""
    surge.play()
    surge.play()
    held = surge.quota
    surge.file("memory/kubepods/besteffort/memory.stat").write_text("total_active_anon 5\n")
    reasons = [surge.linger(1, web=400).degraded_reason for _ in range(11)]
    assert reasons == [""] * 10 + ["NodeMetricsMissing"] and surge.quota == held
    assert {d.value for d in surge.results[-1].lending.reclaimable} == {0}


def test_an_unreadable_pod_counts_with_its_request(surge: Scenario) -> None:
    """One broken cgroup file costs that pod's measurement, everything else goes on."""
    surge.play()
    surge.play()
    surge.lay()
    surge.file("cpuacct/kubepods/burstable/poduid-web/cpuacct.usage").write_text("?")
    result = surge.tick.run()
    assert result.usage is not None and result.lending.reclaimable[0].reason is Reason.COMPUTED
    lost = surge.file("cpuacct/kubepods/besteffort/poduid-job/cpuacct.usage")
    shutil.rmtree(lost.parent)
    assert surge.play().usage is not None


def test_unknown_pods_lend_nothing_but_limits_hold(surge: Scenario) -> None:
    """Suppression needs no API server: cgroup counters alone keep the ceiling right."""
    surge.cluster.now = msgspec.structs.replace(surge.cluster.now, pods=None)
    surge.play()
    result = surge.play()
    assert {d.reason for d in result.lending.reclaimable} == {Reason.PODS_UNKNOWN}
    assert surge.quota > 0 and surge.brake.plan is not None


@pytest.mark.parametrize("name", ["v1_recorded", "v2_recorded", "v2_systemd_recorded"])
def test_recorded_nodes(tmp_path: Path, build: Any, name: str) -> None:
    """On a real kernel's files of either version the kernel ends up with what was decided, and restore undoes it."""
    node = Scenario(name, tmp_path, build)
    files = [path for knob in node.knobs.all if (path := node.executor.path(knob)).exists()]
    before = {path: path.read_text().split() for path in files}
    last = node.play_all()[-1]
    assert last.usage is not None and last.lending.degraded is None and last.usage.containers
    assert last.limits.decisions[node.knob].value > 0
    for knob, limit in last.limits.limits.items():
        held = node.executor.read(knob)
        absent = limit.decision.reason in (Reason.KNOB_UNREADABLE, Reason.CONTROLLER_ABSENT)
        assert held == limit.value or (isinstance(held, Missing) and absent)
    node.executor.restore()
    assert {path: path.read_text().split() for path in files} == before


@pytest.mark.parametrize("name", ["v1_cgroupfs_docker", "v1_systemd_docker", "v2_cgroupfs_crio", "v2_systemd_crio"])
def test_processes_are_limited(tmp_path: Path, build: Any, name: str) -> None:
    """Best effort gets a third of nine tenths of 32,768, less what others have; a pod a quarter; restore undoes it."""
    node = Scenario(name, tmp_path / "node", build, made=tmp_path / "made")
    node.play_all()
    below = node.cgroups if node.layout.version == 2 else node.cgroups / "pids"
    said = {str(path.parent.relative_to(below)): path.read_text().strip() for path in below.rglob("pids.max")}
    best_effort = node.layout.best_effort.lstrip("/")
    limited = {group: text for group, text in said.items() if text != "max"}
    assert sorted(limited.values(), key=int) == ["2457", "9734"] and limited[best_effort] == "9734"
    assert all(group.startswith(best_effort) for group in limited)
    assert node.originals is not None and len([k for k in node.originals.originals if k.file == "pids.max"]) == 2
    node.executor.restore()
    assert {path.read_text().strip() for path in below.rglob("pids.max")} == {"max"}


def thrashing_node(root: Path, build: Any, settings: AgentSettings | None = None) -> Scenario:
    return listed_node("v2_thrash_without_stalls", root, build, settings)


def listed_node(name: str, root: Path, build: Any, settings: AgentSettings | None = None) -> Scenario:
    """Its pods come from the API server: a static one would not be evicted."""
    node = Scenario(name, root, build, settings, made=root.with_suffix(".made"))
    facts = node.cluster.now
    pods = tuple(msgspec.structs.replace(pod, uid=pod.cgroup_uid) for pod in facts.pods or ())
    node.cluster.now = msgspec.structs.replace(facts, pods=pods)
    return node


def test_thrashing_without_stalls_cannot_wait(tmp_path: Path, build: Any) -> None:
    """The victim that was asked to go at leisure is hurried once online pods read back half of what is left."""
    node = thrashing_node(tmp_path / "node", build)
    results = node.play_all()
    full = results[-1].observation.node_pressure
    assert full is not None and full.memory_full is not None and full.memory_full.avg10_pct < 1
    told = [result.evictions.refaulted for result in results]
    values = [(one.value >> 20, one.reason) for one in told if one is not None]
    thrashing, calm = Reason.THRASHING, Reason.WITHIN_THRESHOLD
    assert values == [(100, calm), (200, calm), (300, thrashing), (400, thrashing)]
    assert [(order.name, order.grace_seconds) for order in node.evictor.requests] == [("train", None), ("train", 1)]
    assert "online pods read back" in node.evictor.requests[1].decision.detail
    assert node.brake.watch.signs == MemorySigns(8 * GIB * 3 // 100, 50)
    off = thrashing_node(tmp_path / "off", build, AgentSettings(eviction=EvictionStrategy(thrash_refault_pct=None)))
    off.play_all()
    assert [order.grace_seconds for order in off.evictor.requests] == [None], "stalls alone tell nothing here"


def test_memory_is_reclaimed_before_anybody_is_evicted(tmp_path: Path, build: Any) -> None:
    """A look below the threshold, steps beyond it while they free memory, then the eviction; nothing is left behind."""
    node = listed_node("v2_memory_short", tmp_path / "node", build)
    look = PodLook(512 << 20, 400 << 20, 0, 0.0)
    train = next(pod.uid for pod in node.cluster.now.pods or () if pod.name == "train")
    node.play()
    assert [(order.uid, order.bytes) for order in node.reclaimer.orders] == [(train, 0)]
    told = []
    for asked, freed in ((0, 0), (32, 32), (32, 8)):
        node.reclaimer.answers = (ReclaimAnswer(train, asked << 20, freed << 20, look),)
        told.append(node.play())
    assert [order.bytes >> 20 for order in node.reclaimer.orders] == [0, 32, 32]
    assert [result.evictions.shrinking[0].reason for result in told] == [
        Reason.SHRINKING,
        Reason.SHRINKING,
        Reason.SHRINK_EXHAUSTED,
    ]
    assert [result.evictions.needs[0].reason for result in told[:2]] == [Reason.SHRINKING] * 2
    assert [order.name for order in node.evictor.requests] == ["train"]
    assert told[-1].shrink.reclaimed_bytes == 40 << 20
    assert node.originals is not None and not any(
        "/pod" in knob.cgroup for knob in node.originals.originals if knob.file == "memory.high"
    )
    node.start()
    node.play()
    assert node.reclaimer.orders[-1] == ReclaimOrder(train, node.reclaimer.orders[0].cgroup), "a new agent looks first"
    again = listed_node("v2_memory_short", tmp_path / "observing", build, AgentSettings(mode=Mode.OBSERVE))
    again.play_all()
    assert again.reclaimer.orders == []


def test_a_foreign_writer_of_pids_max(tmp_path: Path, build: Any) -> None:
    """A looser value is undone, a tighter one stands until it is loosened."""
    node = Scenario("v2_cgroupfs_crio", tmp_path / "node", build, made=tmp_path / "made")
    node.play()
    file = node.file(f"{node.layout.best_effort.lstrip('/')}/pids.max")
    for foreign, expected in (("max", "9734"), ("20000", "9734"), ("9", "9"), ("max", "9734")):
        file.write_text(foreign)
        node.play()
        assert file.read_text().strip() == expected, foreign


def test_a_node_without_pids_is_told_of_and_goes_on(tmp_path: Path, build: Any) -> None:
    """Neither an error nor a failed write."""
    node = Scenario("v1_missing_controllers", tmp_path / "node", build, made=tmp_path / "made")
    last = node.play_all()[-1]
    assert last.limits.decisions[node.knobs.pids].reason is Reason.CONTROLLER_ABSENT
    assert last.degraded_reason == "" and [o.error for r in node.results for o in r.outcomes if o.error] == []


def test_the_prediction_is_trained_as_set(tmp_path: Path, build: Any) -> None:
    """Each interval once; production's peak is foreseen from the second training on, and mid is lent from it."""
    node = Scenario("v1_surge", tmp_path, build, AgentSettings(prediction=LEARNING))
    trained = [node.linger(1, web=400) and node.tick.state.prediction.trained_seconds for _ in range(25)]
    assert sorted(set(trained)) == [1001.0, 1011.0, 1021.0]
    assert node.results[5].prediction is None
    newest = node.results[-1]
    assert newest.prediction is not None and {d.name for d in newest.lent_decisions} > {"prod-peak-cpu", MID_CPU}
    # 1200m - p95 of 400m, which lies in the bucket up to 413m, plus 10 %: 454m; by bands 200m of system come on top.
    assert 0 < newest.prediction.prod_reclaimable.cpu_millis < 1200 - 454
    assert newest.prediction.prod_reclaimable.memory_bytes == 0


def test_the_tick_period_is_the_settings(tmp_path: Path, build: Any) -> None:
    """A gap of more than ten periods gives no rate: at 3 s a period 15 s do, at 1 s they do not."""
    for seconds, cpu in ((1.0, 100), (3.0, 400)):
        node = Scenario("v1_surge", tmp_path / str(seconds), build, AgentSettings(tick_seconds=seconds))
        node.linger(1, web=0)
        node.linger(1, web=100)
        found = node.linger(15, web=400).usage
        assert found is not None and found.online.last == Usage(cpu, found.online.last.memory_bytes)

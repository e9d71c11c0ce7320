"""What the journal keeps of a tick is all of it: read back it is equal, whatever changed and whatever stayed."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.limit.brake import BrakePlan, Cut
from agent.core.limit.plan import Write
from agent.core.limit.shrink import PodLook, ReclaimAnswer
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    CpuThrottling,
    DiskBytes,
    KnobReading,
    MemoryEvents,
    Missing,
    NetworkBytes,
    NodeSample,
    NumaSample,
    Stall,
)
from agent.ports import TickResult, WriteOutcome
from agent.report.journal import JournalHead, JournalOutcome, LineWriter, RecordedTick, read
from agent.settings import AgentSettings
from agent.tick import TickState
from model.decision import Term
from model.fault import ConfigurationFault
from model.nodecolocation import NodeColocation
from model.nodesettings import NodeSettings
from model.report import Pressure
from model.resources import BATCH_CPU, MEMORY, ResourceVector
from model.strategy import ColocationStrategy, HostApplication
from model.topology import CpuBasics, Zone
from tests.agent.conftest import Build

BUILD = Build()
HEAD = msgspec.json.encode(JournalHead(BUILD.layout, AgentSettings(), TickState())) + b"\n"
ZONE = Zone(0, "node-0", ResourceVector({MEMORY: 1}))

counts = st.integers(0, 2**64 - 1)
times = st.floats(0, 1e10)
stalls = st.none() | st.builds(Stall, times, times, times, counts)
pressures = st.builds(CgroupPressure, stalls, stalls, stalls, stalls, stalls, stalls)
gone = st.builds(Missing, st.text(max_size=3), st.sampled_from(Absence), st.text(max_size=3))
samples = st.builds(
    CgroupSample,
    counts,
    counts,
    st.sampled_from((0, 5)),
    st.sampled_from((None, CpuThrottling(1, 2, 3), CpuThrottling(1, 2, 4))),
    st.sampled_from((None, CgroupPressure(), CgroupPressure(Stall(0.5)))),
    st.sampled_from((None, MemoryEvents(1), MemoryEvents(1, 2))),
    st.sampled_from((None, DiskBytes(1, 2))),
)
founds = samples | gone
names = st.sampled_from(("a", "b", "ü/°"))
knob_readings = st.builds(KnobReading, st.integers(-1, 10**6) | gone, st.none() | st.integers(-1, 10**6))
facts = st.builds(
    BUILD.facts,
    node=st.sampled_from((None, BUILD.node(), BUILD.node(4000))),
    pods=st.sampled_from((None, (), (BUILD.pod(),), (BUILD.pod(), BUILD.batch(batch_cpu=5)))),
    settings=st.sampled_from(
        (
            NodeSettings(),
            NodeSettings(ColocationStrategy(enable=False), host_applications=(HostApplication("n", "/x"),)),
        )
    ),
    settings_known=st.booleans(),
    colocation=st.sampled_from(
        (NodeColocation(), NodeColocation(ResourceVector({MEMORY: 9}), normalization_ratio=1.5))
    ),
    zones=st.sampled_from(((), (ZONE,))),
    cpu=st.sampled_from((None, CpuBasics("Xeon", turbo=True))),
    problem=st.sampled_from(("", "NodeSLO n: x")),
    unsettled=st.booleans(),
    settings_deleted=st.booleans(),
    unmet=st.sampled_from(((), ("cpu-burst-config.policy",))),
    pods_age_seconds=times | st.just(math.inf),
)
cuts = st.builds(
    Cut, st.just(BrakePlan(BUILD.knobs.quota, (Term("capacity", 9),), 9, 0, 9, 1)), times, times, counts, counts, counts
)


@st.composite
def ticks(draw: st.DrawFn) -> TickResult:
    """Anything a tick may have seen, been told and done."""
    told = draw(facts)
    seen = BUILD.seen(
        draw(times),
        node_sample=draw(st.builds(NodeSample, counts, counts, st.integers(1, 99), counts) | gone),
        kubepods=draw(founds),
        best_effort=draw(founds),
        burstable=draw(st.none() | founds),
        pods=draw(st.dictionaries(names, founds)),
        containers=draw(st.dictionaries(names, st.dictionaries(names, founds))),
        host_applications=draw(st.dictionaries(names, founds)),
        unlisted_pods=draw(st.sampled_from(((), ("x",)))),
        network=draw(st.dictionaries(names, st.builds(NetworkBytes, counts, counts))),
        numa=draw(st.sampled_from(((), (NumaSample(0, 5, 6), NumaSample(1, 7, 8))))),
        best_effort_cpus=draw(st.none() | st.integers(0, 9)),
        knobs={knob: draw(knob_readings) for knob in BUILD.knobs.all},
        pressure=draw(st.none() | st.builds(Pressure, times, times, times)),
        node_pressure=draw(st.none() | pressures),
        node=told.node,
        listed=told.pods,
        brake_cuts=draw(counts),
        last_cut_monotonic=draw(st.none() | times),
    )
    write = Write(BUILD.knobs.quota, 5, 9, BUILD.decision("x", 5))
    outcome = WriteOutcome(write, *draw(st.sampled_from((("", False), ("bad", False), ("", True)))))
    result: TickResult = BUILD.result(
        observation=seen,
        facts=told,
        lending=BUILD.lending(draw(st.integers(0, 9))),
        brake_cuts=tuple(draw(st.lists(cuts, max_size=2))),
        outcomes=(outcome,),
        reclaimed=tuple(draw(st.lists(st.just(ReclaimAnswer("u", 32, 16, PodLook(9, 8, 7, 1.5))), max_size=1))),
    )
    return result


def recorded(result: TickResult) -> RecordedTick:
    """What must be read back."""
    told = tuple(JournalOutcome(o.write.knob, o.error, o.dropped) for o in result.outcomes if o.error or o.dropped)
    return RecordedTick(
        result.facts,
        result.observation,
        result.brake_cuts,
        result.kills,
        result.ordered,
        told,
        result.decisions,
        result.reclaimed,
    )


def written(*results: TickResult) -> list[bytes]:
    lines = LineWriter()
    return [HEAD, *(lines.line(result) + b"\n" for result in results)]


@settings(max_examples=80)
@given(st.lists(st.tuples(ticks(), st.booleans()), max_size=5))
def test_any_ticks_are_read_back_as_they_were(told: list[tuple[TickResult, bool]]) -> None:
    """Pods come and go, samples are missing, facts change or stay, a head stands anywhere between."""
    lines, writer = [HEAD], LineWriter()
    for result, rotated in told:
        if rotated:
            writer.begin()
            lines.append(HEAD)
        lines.append(writer.line(result) + b"\n")
    found = [line for line in read(lines, "j") if isinstance(line, RecordedTick)]
    assert found == [recorded(result) for result, _ in told]


SLOW_PARTS: dict[str, tuple[CgroupSample | Missing, ...]] = {
    "unchanged": (CgroupSample(1, 2, 3, CpuThrottling(4, 5)), CgroupSample(9, 2, 3, CpuThrottling(4, 5))),
    "changed": (CgroupSample(1, 2, disk=DiskBytes(1, 1)), CgroupSample(1, 3, disk=DiskBytes(1, 2))),
    "no longer known": (CgroupSample(1, 2, events=MemoryEvents(1)), CgroupSample(1, 2)),
    "known at last": (CgroupSample(1, 2), CgroupSample(1, 2, pressure=CgroupPressure())),
    "gone and back": (
        CgroupSample(1, 2, 3, CpuThrottling(4, 5)),
        Missing("/a", Absence.GONE, "x"),
        CgroupSample(1, 2, 3, CpuThrottling(4, 5)),
    ),
    "back to nothing": (CgroupSample(5, 6, 7), CgroupSample(0, 0, 0)),
}


@pytest.mark.parametrize("samples", SLOW_PARTS.values(), ids=SLOW_PARTS.keys())
def test_samples_over_time(build: Any, samples: tuple[CgroupSample | Missing, ...]) -> None:
    """Of a root, a pod, a container and a host application alike; a pod that left in between starts again."""
    results = [
        build.result(observation=build.seen(at, kubepods=s, pods={"u": s}, containers={"u": {"c": s}}))
        for at, s in enumerate(samples)
    ]
    results.insert(1, build.result(observation=build.seen(0.5)))
    results = [msgspec.structs.replace(r, facts=build.facts(node=build.node(), pods=())) for r in results]
    assert list(read(written(*results), "j"))[1:] == [recorded(result) for result in results]


def test_ports_of_a_recorded_tick(build: Any) -> None:
    """Knobs and the brake's count are those of the observation."""
    seen = build.seen(brake_cuts=3, last_cut_monotonic=2.5)
    (tick,) = [t for t in read(written(build.result(observation=seen)), "j") if isinstance(t, RecordedTick)]
    assert tick.knobs.readings == seen.knobs
    assert (tick.knobs.brake_cuts, tick.knobs.last_cut_monotonic) == (3, 2.5)


def test_an_unchanged_tick_is_small(build: Any) -> None:
    """250 pods of two containers of which only CPU counters moved: below 80 KB a tick, facts left out."""
    pods = tuple(build.pod(f"pod-{number:03d}") for number in range(250))

    def result(at: int) -> TickResult:
        sample = CgroupSample(
            10**15 + at, 10**9, 10**8, CpuThrottling(1, 2, 3), CgroupPressure(Stall()), MemoryEvents(), DiskBytes(9, 9)
        )
        seen = build.seen(
            at,
            pods={pod.uid: sample for pod in pods},
            containers={pod.uid: {"app": sample, "proxy": sample} for pod in pods},
            node=node,
            listed=pods,
        )
        made: TickResult = build.result(observation=seen, facts=msgspec.structs.replace(facts, problem=""))
        return made

    node = build.node()
    facts = build.facts(*pods, node=node)
    _, first, second = written(result(0), result(1))
    assert len(second) < 80_000 < len(first)
    assert b"pod-007" in first and b'"name":"pod-007"' not in second


def test_a_line_that_was_cut_off_ends_the_journal(build: Any) -> None:
    """A power failure costs the last tick, not the journal."""
    *lines, last = written(build.result(0), build.result(1))
    assert len(list(read([*lines, last[:-20]], "j"))) == 2
    assert len(list(read([HEAD[:10]], "j"))) == 0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"garbage\n", "j line 3: is no journal line: JSON is malformed"),
        (b'{"line":"tock"}\n', "j line 3: is no journal line: Invalid value 'tock' - at `$.line`"),
        (b'{"line":"tick"}\n', "j line 3: is no journal line: Object missing required field"),
        (b"\xff\n", "j line 3: is no journal line: "),
        (b"\n", "j line 3: is no journal line: "),
        (b"[" * 5000 + b"\n", "j line 3: is no journal line: "),
    ],
)
def test_a_line_that_is_none(build: Any, line: bytes, told: str) -> None:
    """One fault with file and line number, after everything before it was given."""
    reading = read([*written(build.result()), line], "j")
    assert isinstance(next(reading), JournalHead) and isinstance(next(reading), RecordedTick)
    with pytest.raises(ConfigurationFault) as fault:
        next(reading)
    assert str(fault.value).startswith(told) and "give a file written by --journal" in str(fault.value)


def test_a_decision_that_does_not_add_up_is_refused(build: Any) -> None:
    """Terms that were tampered with are no record at all."""
    head, line = written(build.result(lending=build.lending(700)))
    assert f'"{BATCH_CPU}","value":700'.encode() in line
    with pytest.raises(ConfigurationFault, match=r"j line 2: .*terms sum to 700, value is 701"):
        list(read([head, line.replace(b'"value":700,"unit"', b'"value":701,"unit"')], "j"))


def test_a_journal_of_another_format(build: Any) -> None:
    """What this version would understand by halves is refused, and the message says which version reads it."""
    head = msgspec.json.encode(JournalHead(build.layout, AgentSettings(), TickState(), format=2)) + b"\n"
    with pytest.raises(
        ConfigurationFault, match=r"line 1: is of journal format 2; this version reads 4.*that wrote it"
    ):
        list(read([head], "journal"))


def test_a_piece_without_its_head(build: Any) -> None:
    """A tick can only be read after what it builds on."""
    with pytest.raises(ConfigurationFault, match="j line 1: comes before any head line"):
        list(read(written(build.result())[1:], "j"))

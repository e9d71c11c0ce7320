"""`sublet replay`: what it says of a journal that comes out the same, of one that does not, and of other settings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.brake import Cut
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.knobs import RootKnobs
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, Knob, KnobReading, NodeSample, Observation, Places
from agent.edge.journal import JournalFile
from agent.ports import ClusterFacts, KnobReadings, TickPorts, WriteOutcome
from agent.report.journal import JournalHead
from agent.settings import AgentSettings
from agent.tick import Tick
from cli.main import main
from model.node import Node
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.resources import CPU, MEMORY, ResourceVector
from tests.agent.playing import FakeEvictor, FakeReclaimer
from tests.pods import make_pod

GIB = 1 << 30
LAYOUT = Layout("/kubepods")
START = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""


class Recorder:
    """Every port of a tick on a node of 8 CPUs and 16 GiB, where the one service uses `load(second)` milli-CPU."""

    def __init__(self, load: Callable[[int], int]) -> None:
        self._load = load
        self._second = 0
        self._used_ns = 0
        amounts = ResourceVector({CPU: 8000, MEMORY: 16 * GIB})
        pod = make_pod(
            namespace="shop",
            name="web",
            uid="web",
            cgroup_uid="web",
            requests=ResourceVector({CPU: 4000, MEMORY: 4 * GIB}),
            qos=QoSClass.LS,
            qos_label=QoSClass.LS,
            kubernetes_qos=KubernetesQoS.BURSTABLE,
            band=PriorityBand.PROD,
            phase=PodPhase.RUNNING,
        )
        self._facts = ClusterFacts(Node("n1", amounts, amounts), (pod,))
        self._held = dict.fromkeys(RootKnobs.of(LAYOUT).all, -1)

    def facts(self) -> ClusterFacts:
        return self._facts

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        return KnobReadings({knob: KnobReading(self._held[knob]) for knob in knobs}, 0, None)

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        self._second += 1
        self._used_ns += self._load(self._second) * 1_000_000
        sample = CgroupSample(self._used_ns, 3 * GIB)
        return Observation(
            at_seconds=START + self._second,
            monotonic_seconds=float(self._second),
            node_sample=NodeSample(self._used_ns, 3 * GIB, 8),
            kubepods=sample,
            best_effort=CgroupSample(0, 0),
            pods={"web": sample},
            knobs=knobs.readings,
            node=facts.node,
            listed=facts.pods,
        )

    def places(self, facts: ClusterFacts) -> Places:
        return Places()

    def drain(self) -> tuple[Cut, ...]:
        return ()

    def kills(self) -> tuple[Kill, ...]:
        return ()

    def arm(self, watch: Watch) -> None:
        """No brake here."""

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        self._held |= {write.knob: write.value for write in writes}
        return tuple(WriteOutcome(write) for write in writes)


Record = Callable[[Callable[[int], int], int], Path]


@pytest.fixture
def record(tmp_path: Path) -> Record:
    """Writes a journal as the agent does; returns its path."""

    def recorded(load: Callable[[int], int], ticks: int) -> Path:
        node = Recorder(load)
        ports = TickPorts(node, node, node, node, FakeEvictor(), FakeReclaimer())
        path = tmp_path / "journal.jsonl"
        journal = JournalFile(path, 1 << 30, lambda: JournalHead(LAYOUT, AgentSettings(), tick.state))
        tick = Tick(LAYOUT, AgentSettings(), ports, (journal,))
        journal.begin()
        for _ in range(ticks):
            tick.run()
        journal.close()
        return path

    return recorded


def surge(second: int) -> int:
    """1 CPU, and 3 CPUs from the 31st second on."""
    return 3000 if second > 30 else 1000


def altered(journal: Path, change: Callable[[dict[str, Any]], None], *ticks: int) -> Path:
    """The journal with the lines of those ticks (1 is the first) changed."""
    lines = journal.read_bytes().splitlines()
    for tick in ticks:
        line = json.loads(lines[tick])
        change(line)
        lines[tick] = json.dumps(line).encode()
    journal.write_bytes(b"".join(line + b"\n" for line in lines))
    return journal


def lend_less(line: dict[str, Any]) -> None:
    decision = line["decisions"][0]
    decision["value"] -= 100
    decision["terms"][0]["value"] -= 100


def forget_one(line: dict[str, Any]) -> None:
    del line["decisions"][0]


def give_another_reason(line: dict[str, Any]) -> None:
    line["decisions"][0] |= {"reason": "PodsStale", "policy": "request"}


def turn_round(line: dict[str, Any]) -> None:
    line["decisions"].reverse()


def see(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    code = main(["replay", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_the_same_decisions_are_one_line(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0; ticks and decisions are counted."""
    code, out = see(capsys, record(surge, 60))
    assert code == 0
    assert re.fullmatch(r"[0-9]{3} decisions in 60 ticks: all identical\n", out)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lend_less, ["kubernetes.io/batch-cpu of node/n1: recorded 3700m, now 3800m", "    capacity: 7900 (node status) → 8000 (node status)"]),
        (forget_one, ["kubernetes.io/batch-cpu of node/n1: recorded nothing, now 3800m"]),
        (give_another_reason, ["kubernetes.io/batch-cpu of node/n1: recorded 3800m, now 3800m", "    reason: PodsStale → Computed", "    policy: request → usage"]),
        (turn_round, ["the same decisions, in another order or number"]),
    ],
)  # fmt: skip
def test_a_difference_is_told_and_costs_the_exit_code(
    change: Callable[[dict[str, Any]], None],
    expected: list[str],
    record: Record,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """When, what, and which parts of it; 8000 - 3200 - 1000 milli-CPU were lent in the 20th second."""
    code, out = see(capsys, altered(record(surge, 30), change, 20))
    first, *others = expected
    *told, last = out.splitlines()
    assert code == 1
    assert told == [f"2026-01-01T00:00:20Z  {first}", *others]
    assert last.endswith(" decisions in 30 ticks: different in 1 of them")


def test_only_the_first_differences_are_told(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """A broken version differs everywhere: five are enough, all are counted."""
    code, out = see(capsys, altered(record(surge, 30), lend_less, *range(10, 30)))
    assert code == 1
    assert out.count("recorded") == 5 and out.endswith(" in 30 ticks: different in 20 of them\n")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """80 instead of 60 % of the CPUs may be in use."""
    path = tmp_path / "settings.yaml"
    path.write_text("colocation: {cpu_reclaim_threshold_pct: 80}\n")
    return path


def test_other_settings_in_json(record: Record, settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A point a tick in base units: 8000 - 1600 instead of 8000 - 3200, less 1000 or, 10 s after the surge, 3000."""
    code, out = see(capsys, record(surge, 60), "--settings", settings, "-o", "json")
    points = json.loads(out)
    assert code == 0 and [point["at_seconds"] - START for point in points] == list(range(1, 61))
    for second, lent, would_lend in ((1, 0, 0), (20, 3800, 5400), (50, 1800, 3400)):
        point = points[second - 1]
        assert point["lent"]["kubernetes.io/batch-cpu"] == lent
        assert point["would_lend"]["kubernetes.io/batch-cpu"] == would_lend
        assert set(point) == {"at_seconds", "lent", "would_lend", "node", "reserved", "used"}
        assert (point["node"]["cpu"], point["reserved"]["cpu"]) == (8000, 4000)
        assert point["used"].get("cpu") == {1: None, 20: 1000, 50: 3000}[second]


def test_the_table_averages_slices_and_all(record: Record, settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """60 ticks make 20 lines of three; below them average, least and most of all ticks, in CPUs and GiB."""
    code, out = see(capsys, record(surge, 60), "--settings", settings)
    lines = out.splitlines()
    assert code == 0 and lines[0] == "60 ticks, each line the average of 3"
    assert lines[2].split() == ["batch-cpu", "in", "CPUs", "batch-memory", "in", "GiB"]
    assert lines[3].split() == ["from", "(UTC)", "lent", "would", "lend", "lent", "would", "lend"]
    rows = [line.rsplit(None, 4) for line in lines[4:]]
    assert len(rows) == 20 + 1 + 3
    # 16 GiB - 35 % - 3 GiB used; nothing is known in the first of three seconds
    assert rows[5] == ["2026-01-01 00:00:16", "3.800", "5.400", "7.400", "7.400"]
    assert rows[0] == ["2026-01-01 00:00:01", "2.533", "3.600", "4.933", "4.933"]
    assert rows[-2] == ["least", "0.000", "0.000", "0.000", "0.000"]
    assert rows[-1] == ["most", "3.800", "5.400", "7.400", "7.400"]


def test_few_ticks_are_a_line_each(record: Record, settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is averaged that need not be."""
    _, out = see(capsys, record(surge, 3), "--settings", settings)
    assert out.startswith("3 ticks, each line one of them\n") and len(out.splitlines()) == 2 + 2 + 3 + 1 + 3


def test_a_plot_is_written_beside_the_answer(
    record: Record, settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both formats at once, with and without other settings, and the same file for the same journal."""
    journal, png, svg = record(surge, 40), tmp_path / "lent.png", tmp_path / "lent.SVG"
    assert see(capsys, journal, "--plot", png, "--plot", svg)[0] == 0
    assert png.read_bytes().startswith(b"\x89PNG")
    first = svg.read_bytes()
    assert b"<svg" in first and b"would have been lent" not in first
    see(capsys, journal, "--plot", svg)
    assert svg.read_bytes() == first
    see(capsys, journal, "--settings", settings, "--plot", svg)
    assert b"would have been lent" in svg.read_bytes()


@pytest.mark.parametrize(
    ("case", "arguments", "expected"),
    [
        ("no such journal", ["{tmp}/none"], "{tmp}/none: cannot be read: No such file or directory"),
        ("a folder", ["{tmp}"], "{tmp}: cannot be read: Is a directory"),
        ("an empty one", ["{tmp}/empty"], "{tmp}/empty: holds no tick"),
        ("another file", ["{tmp}/text"], "{tmp}/text line 1: is no journal line"),
        ("no such settings", ["{journal}", "--settings", "{tmp}/none"], "{tmp}/none: cannot be read"),
        ("a wrong setting", ["{journal}", "--settings", "{tmp}/text"], "{tmp}/text: "),
        ("JSON of nothing to compare", ["{journal}", "-o", "json"], "--output json: needs --settings"),
        ("an unknown picture", ["{journal}", "--plot", "x.gif"], "--plot x.gif: is neither .png nor .svg"),
        ("a folder that is not there", ["{journal}", "--plot", "{tmp}/no/x.png"], "there is no folder {tmp}/no"),
        ("a picture over a folder", ["{journal}", "--plot", "{tmp}/x.png"], "{tmp}/x.png: cannot be written: Is a directory"),
        ("no journal", [], "Missing argument"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_one_line(
    case: str,
    arguments: list[str],
    expected: str,
    record: Record,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit code 2, nothing on standard output."""
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "x.png").mkdir()
    places = {"tmp": tmp_path, "journal": record(surge, 3)}
    assert main(["replay", *(argument.format(**places) for argument in arguments)]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.startswith("error: ") and seen.err.count("\n") == 1
    assert expected.format(**places) in seen.err


def test_a_cut_off_last_line_ends_the_journal(record: Record, capsys: pytest.CaptureFixture[str]) -> None:
    """A power failure loses a tick, not the journal."""
    journal = record(surge, 20)
    journal.write_bytes(journal.read_bytes()[:-10])
    code, out = see(capsys, journal)
    assert code == 0 and out.endswith(" decisions in 19 ticks: all identical\n")

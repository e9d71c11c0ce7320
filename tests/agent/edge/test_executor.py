"""The single writer: originals first, read back, one lock with the brake."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.core.knobs import V1_QUOTA_FILE
from agent.core.observation import Absence, Knob, KnobReading, Missing, Value
from agent.core.plan import Write
from agent.edge.executor import KnobExecutor
from agent.ports import WriteOutcome
from agent.restoring import Restored
from agent.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.reason import Reason

QUOTA = Knob("/kubepods/besteffort", "cpu", V1_QUOTA_FILE)
POD = Knob("/kubepods/besteffort/podx", "cpu", V1_QUOTA_FILE)
V2_QUOTA = Knob("/kubepods.slice/kubepods-besteffort.slice", "", "cpu.max")
V2_MEMORY = Knob("/kubepods.slice/podx", "", "memory.max")


class Clock:
    def __init__(self) -> None:
        self.now = 7.0

    def __call__(self) -> float:
        return self.now


class Node:
    """A tree of plain files, and what acts on it; `restart` is another agent with the same state file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.state = StateFile(root / "state/agent.json")
        self.guarded: dict[Knob, str] = {}
        self.executor = self._executor()

    def restart(self) -> None:
        self.state.close()
        self.state = StateFile(self.state.path)
        self.executor = self._executor()

    def _executor(self) -> KnobExecutor:
        return KnobExecutor(self.root, self.state, self.clock, guarded=lambda: self.guarded)

    def say(self, knob: Knob, text: str) -> None:
        path = self.executor.path(knob)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")

    def said(self, knob: Knob) -> str:
        return self.executor.path(knob).read_text().strip()

    def apply(self, *writes: Write, seen_cuts: int = 0) -> tuple[WriteOutcome, ...]:
        return self.executor.apply(writes, seen_cuts)

    def reading(self, knob: Knob = QUOTA) -> KnobReading:
        return self.executor.readings((knob,)).readings[knob]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.say(QUOTA, "-1")
    return made


def write(value: Value, previous: Value = -1, knob: Knob = QUOTA, original: Value | None = None) -> Write:
    number = value if isinstance(value, int) else len(value)
    decision = Decision(knob.subject, knob.file, number, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", number),))
    return Write(knob, value, previous, decision, original)


def test_write_and_read_back(node: Node) -> None:
    """What was written is known as ours from then on, and so is what it was before."""
    assert node.reading() == KnobReading(-1)
    assert node.apply(write(5000)) == (WriteOutcome(write(5000)),)
    assert node.said(QUOTA) == "5000" and node.reading() == KnobReading(5000, 5000, -1)


def test_the_originals_are_on_disk_before_the_first_write(node: Node) -> None:
    """All in one go; later writes do not change them."""
    node.say(POD, "-1")
    node.apply(write(5000), write(4000, knob=POD), write(3000, 5000))
    saved = msgspec.json.decode(node.state.path.read_bytes())
    assert [(entry["knob"]["cgroup"], entry["text"]) for entry in saved["originals"]] == [
        (QUOTA.cgroup, "-1"),
        (POD.cgroup, "-1"),
    ]


def test_a_vanished_knob_is_no_error(node: Node) -> None:
    """Its pod ended between read and write: nothing was done, nothing went wrong, the rest goes on."""
    outcomes = node.apply(write(5000, knob=POD), write(5000))
    assert outcomes == (WriteOutcome(write(5000, knob=POD), dropped=True), WriteOutcome(write(5000)))
    missing = node.executor.read(POD)
    assert isinstance(missing, Missing) and missing.absence is Absence.GONE and POD not in node.state.originals


def test_a_knob_that_is_not_understood_is_an_error(node: Node) -> None:
    """It is not written, since nobody could put it back."""
    node.say(QUOTA, "soon")
    outcome = node.apply(write(5000))[0]
    assert f"{V1_QUOTA_FILE}: " in outcome.error and "soon" in outcome.error and node.said(QUOTA) == "soon"


def test_lower_only_lowers_and_is_counted(node: Node) -> None:
    """The brake's way in: a value that gives less, or nothing."""
    assert node.executor.lower(QUOTA, 9000) == -1
    assert node.executor.lower(QUOTA, 9000) is None and node.executor.lower(QUOTA, 10_000) is None
    found = node.executor.readings((QUOTA,))
    assert (node.said(QUOTA), found.brake_cuts, found.last_cut_monotonic) == ("9000", 1, 7.0)


def test_a_cut_puts_larger_quotas_out_of_its_way(node: Node) -> None:
    """Those above the new value, and only those; what they were is known. One that is gone stops nothing."""
    other = Knob("/kubepods/besteffort/pody", "cpu", V1_QUOTA_FILE)
    gone = Knob("/kubepods/besteffort/podz", "cpu", V1_QUOTA_FILE)
    node.say(POD, "8000")
    node.say(other, "3000")
    below = ((gone, 9000), (POD, 8000), (other, 3000))
    assert node.executor.lower(QUOTA, 5000, below) == -1
    assert [node.said(knob) for knob in (QUOTA, POD, other)] == ["5000", "-1", "3000"]
    assert node.reading(POD) == KnobReading(-1, -1, 8000) and node.executor.failed_cuts == 0


def test_a_raise_decided_before_a_cut_is_dropped(node: Node) -> None:
    """So is one that narrows what the tick saw, but not what the brake left; a value below that is written."""
    node.apply(write(9000))
    node.executor.lower(QUOTA, 4000)
    assert node.apply(write(10_000, 9000))[0].dropped and node.apply(write(6000, 9000))[0].dropped
    assert node.apply(write(3000, 9000)) == (WriteOutcome(write(3000, 9000)),) and node.said(QUOTA) == "3000"
    assert node.apply(write(6000, 3000), seen_cuts=1) == (WriteOutcome(write(6000, 3000)),)


def test_no_write_without_a_durable_original(node: Node) -> None:
    """A full disk: neither the first write nor the second happens, and nothing is forgotten."""
    blocked = node.state.path.with_name("agent.json.new")
    blocked.mkdir()
    for _ in range(2):
        assert node.apply(write(5000))[0].error and node.said(QUOTA) == "-1"
    blocked.rmdir()
    assert node.apply(write(5000))[0].error == "" and node.said(QUOTA) == "5000"
    assert node.executor.restore().changed == 1 and node.said(QUOTA) == "-1"


def test_a_full_disk_does_not_stop_the_brake(node: Node) -> None:
    """Once the original is known a cut needs no disk; before, it is refused and counted."""
    blocked = node.state.path.with_name("agent.json.new")
    blocked.mkdir()
    assert node.executor.lower(QUOTA, 5000) is None and node.executor.failed_cuts == 1 and node.said(QUOTA) == "-1"
    blocked.rmdir()
    node.apply(write(9000))
    blocked.mkdir()
    assert node.executor.lower(QUOTA, 5000) == 9000 and node.said(QUOTA) == "5000"


def test_restore(node: Node) -> None:
    """Originals come back, once, and nothing counts as ours; a second restore has nothing to do."""
    node.apply(write(5000))
    assert node.executor.restore() == Restored(changed=1) and node.said(QUOTA) == "-1"
    assert node.executor.restore() == Restored() and not node.state.path.exists()
    assert node.reading() == KnobReading(-1)


def test_quota_and_period_in_one_file(node: Node) -> None:
    """cgroup v2: both are written, the number is the quota of a period of 100 ms; restore brings the text back."""
    node.say(V2_QUOTA, "20000 50000")
    assert node.reading(V2_QUOTA) == KnobReading(40_000)
    assert node.apply(write(5000, 40_000, V2_QUOTA))[0].error == "" and node.said(V2_QUOTA) == "5000 100000"
    assert node.executor.lower(V2_QUOTA, 4000) == 5000 and node.said(V2_QUOTA) == "4000 100000"
    assert node.executor.restore().changed == 1 and node.said(V2_QUOTA) == "20000 50000"


@pytest.mark.parametrize("text", ["", "max", "5000", "x 100000", "5000 0", "5000 -1", "-5 100000 7"])
def test_a_file_that_makes_no_sense(node: Node, text: str) -> None:
    """Unreadable is a value that says what stands there; the brake leaves it alone."""
    node.say(V2_QUOTA, text)
    found = node.executor.read(V2_QUOTA)
    assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE and found.detail
    assert node.executor.lower(V2_QUOTA, 1) is None and node.executor.failed_cuts == 0


def test_the_original_of_what_was_born_with_our_value(node: Node) -> None:
    """The plan knows better than the file."""
    knob = Knob("/kubepods/besteffort/podx", "cpuset", "cpuset.cpus")
    node.say(knob, "0")
    node.apply(write("1", "0", knob, original="0-1"))
    assert node.said(knob) == "1" and node.reading(knob) == KnobReading("1", "1", "0-1")


@pytest.mark.parametrize(("text", "ours"), [("5000", 5000), ("-1", None)])
def test_what_an_agent_before_left_is_ours(node: Node, text: str, ours: int | None) -> None:
    """So that it can be lifted; a knob that holds its original again was given back, and is somebody else's."""
    node.apply(write(4000))
    node.restart()
    node.executor.path(QUOTA).unlink()
    assert node.reading().ours is None
    node.say(QUOTA, text)
    assert node.reading() == KnobReading(int(text), ours, -1)
    node.say(QUOTA, "7000")
    assert node.reading() == KnobReading(7000, ours, -1)


def test_what_the_guard_wrote_is_ours(node: Node) -> None:
    """It is no foreign cap: the agent goes on from there. A looser value is nobody's gift."""
    node.apply(write(9000))
    node.say(QUOTA, "2000")
    assert node.reading() == KnobReading(2000, 9000, -1)
    node.guarded = {QUOTA: "9000"}
    assert node.reading() == KnobReading(2000, 2000, -1)
    node.say(QUOTA, "9000")
    assert node.reading() == KnobReading(9000, 2000, -1)


def test_what_the_guard_found_is_the_original(node: Node) -> None:
    """An agent that starts while the guard holds has not seen what was before."""
    node.say(QUOTA, "2000")
    node.guarded = {QUOTA: "-1"}
    node.apply(write(1500, 2000))
    assert node.reading() == KnobReading(1500, 1500, -1)


def test_cgroups_that_are_gone_are_forgotten(node: Node) -> None:
    """Once a minute; pods come and go for months."""
    node.say(POD, "-1")
    node.apply(write(5000), write(4000, knob=POD))
    node.executor.path(POD).unlink()
    node.executor.path(POD).parent.rmdir()
    node.clock.now += 59
    node.apply()
    assert set(node.state.originals) == {QUOTA, POD}
    node.clock.now += 2
    node.apply()
    assert set(node.state.originals) == {QUOTA}
    node.say(POD, "-1")
    assert node.reading(POD) == KnobReading(-1) and node.reading().ours == 5000


def test_a_memory_limit_that_would_kill_waits(node: Node) -> None:
    """The pod grew since it was looked at; the next tick knows."""
    node.say(V2_MEMORY, "max")
    folder = node.executor.path(V2_MEMORY).parent
    (folder / "memory.current").write_text("9000000\n")
    lists = "inactive_anon 0\nactive_anon 9000000\ninactive_file 0\nactive_file 0\nunevictable 0\n"
    (folder / "memory.stat").write_text(f"anon 0\n{lists}")
    assert node.apply(write(8_000_000, knob=V2_MEMORY))[0].dropped and node.said(V2_MEMORY) == "max"
    assert node.apply(write(9_500_000, knob=V2_MEMORY)) == (WriteOutcome(write(9_500_000, knob=V2_MEMORY)),)


def test_observing_changes_nothing(node: Node) -> None:
    """Neither control files nor the state file; it reads and answers as ever."""
    executor = KnobExecutor(node.root, node.state, node.clock, dry=True)
    assert executor.apply((write(5000),), 0) == (WriteOutcome(write(5000), dropped=True),)
    assert executor.lower(QUOTA, 5000) is None and executor.failed_cuts == 0
    assert executor.readings((QUOTA,)).readings[QUOTA] == KnobReading(-1)
    assert node.said(QUOTA) == "-1" and not node.state.path.exists()

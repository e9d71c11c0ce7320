"""The single writer: originals first, read back, one lock with the brake."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agent.core.evict.eviction_request import EvictionRecord
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.observe.knobs import V1_QUOTA_FILE
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Value
from agent.edge import executor
from agent.edge.executor import KnobExecutor
from agent.files.restoring import Restored
from agent.files.statefile import StateFile
from agent.ports import WriteOutcome
from model.decision import Decision, Term, Unit
from model.reason import Reason

QUOTA = Knob("/kubepods/besteffort", "cpu", V1_QUOTA_FILE)
POD = Knob("/kubepods/besteffort/podx", "cpu", V1_QUOTA_FILE)
V2_QUOTA = Knob("/kubepods.slice/kubepods-besteffort.slice", "", "cpu.max")
ONLINE = Knob("/kubepods/burstable/podx/c1", "cpu", V1_QUOTA_FILE)
V2_MEMORY = Knob("/kubepods.slice/podx", "", "memory.max")
PATIENCE_SECONDS = 20


class Clock:
    def __init__(self) -> None:
        self.now = 7.0

    def __call__(self) -> float:
        return self.now


class Disk(StateFile):
    """A state file whose disk answers nobody between `hang` and `answer`; who waited then fails."""

    def __init__(self, path: Path) -> None:
        self._answers = threading.Event()
        self._answers.set()
        super().__init__(path)

    def hang(self) -> None:
        self._answers.clear()

    def answer(self) -> None:
        self._answers.set()

    def _save(self, texts: dict[Knob, str], evictions: EvictionRecord) -> None:
        if not self._answers.is_set():
            self._answers.wait(PATIENCE_SECONDS)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super()._save(texts, evictions)


class Node:
    """A tree of plain files, and what acts on it; `restart` is another agent with the same state file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self.state = Disk(root / "state/agent.json")
        self.guarded: dict[Knob, str] = {}
        self.executor = self._executor()

    def restart(self) -> None:
        self.state.close()
        self.state = Disk(self.state.path)
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

    def settle(self) -> None:
        assert self.executor.idle(PATIENCE_SECONDS)

    def reading(self, knob: Knob = QUOTA) -> KnobReading:
        return self.executor.readings((knob,)).readings[knob]


class Reclaiming:
    """A memory limit, or another, whose kernel takes its time: whoever opens it waits for `end`."""

    def __init__(self, node: Node, knob: Knob = V2_MEMORY) -> None:
        self._node, self._knob = node, knob
        self._path = node.executor.path(knob)
        self._path.unlink()
        os.mkfifo(self._path)
        self._answer = -1

    def begun(self, text: str) -> None:
        """Somebody waits; the file says `text` to those who come later."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._answer < 0:
            assert time.monotonic() < deadline, "nobody opens it"
            with contextlib.suppress(OSError):
                self._answer = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            time.sleep(0.005)
        self._path.unlink()
        self._node.say(self._knob, text)

    def end(self) -> None:
        os.write(self._answer, b"9000000")
        os.close(self._answer)
        self._node.settle()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    made.say(QUOTA, "-1")
    yield made
    made.executor.close()
    made.state.close()


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


def test_a_cut_the_kernel_takes_touches_no_children(node: Node) -> None:
    """Each costs time before it lands; a real kernel that refuses it is in tests/agent/kernel."""
    node.say(POD, "8000")
    assert node.executor.lower(QUOTA, 5000, ((POD, 8000),)) == -1
    assert [node.said(knob) for knob in (QUOTA, POD)] == ["5000", "8000"] and set(node.state.originals) == {QUOTA}


def test_a_raise_decided_before_a_cut_is_dropped(node: Node) -> None:
    """So is one that narrows what the tick saw, but not what the brake left; a value below that is written."""
    node.apply(write(9000))
    node.executor.lower(QUOTA, 4000)
    assert node.apply(write(10_000, 9000))[0].dropped and node.apply(write(6000, 9000))[0].dropped
    assert node.apply(write(3000, 9000)) == (WriteOutcome(write(3000, 9000)),) and node.said(QUOTA) == "3000"
    assert node.apply(write(6000, 3000), seen_cuts=1) == (WriteOutcome(write(6000, 3000)),)


@pytest.mark.parametrize(("value", "back"), [(72_001, False), (50_000, True)])
def test_a_resize_between_reading_and_writing_stays(node: Node, value: int, back: bool) -> None:
    """The kubelet writes an online container's quota once, and nobody would write it again."""
    node.say(ONLINE, "50000")
    node.apply(write(60_001, 50_000, ONLINE))
    assert node.said(ONLINE) == "60001"
    late = msgspec.structs.replace(write(value, 60_001, ONLINE), gives_back=back)
    node.say(ONLINE, "80000")
    assert node.apply(late) == (WriteOutcome(late, dropped=True),) and node.said(ONLINE) == "80000"
    assert node.reading(ONLINE) == KnobReading(80_000, 60_001, 50_000, loosened=True)
    settled = msgspec.structs.replace(write(80_000, 80_000, ONLINE), gives_back=True)
    assert node.apply(settled) == (WriteOutcome(settled),) and ONLINE not in node.state.originals


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
    assert node.reading().last_written is None
    node.say(QUOTA, text)
    assert node.reading() == KnobReading(int(text), ours, -1)
    node.say(QUOTA, "7000")
    assert node.reading() == KnobReading(7000, ours, -1, loosened=ours is not None)


def test_what_the_guard_wrote_is_ours(node: Node) -> None:
    """It is no foreign cap: the agent goes on from there. A looser value is nobody's gift."""
    node.apply(write(9000))
    node.say(QUOTA, "2000")
    assert node.reading() == KnobReading(2000, 9000, -1)
    node.guarded = {QUOTA: "9000"}
    assert node.reading() == KnobReading(2000, 2000, -1)
    node.say(QUOTA, "9000")
    assert node.reading() == KnobReading(9000, 2000, -1, loosened=True)


def test_what_the_guard_wrote_is_ours_though_we_never_wrote(node: Node) -> None:
    """An agent that had nothing to write before it fell silent would else leave it in force for ever."""
    node.say(QUOTA, "2000")
    assert node.reading().last_written is None
    node.guarded = {QUOTA: "-1"}
    assert node.reading().last_written == 2000


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
    node.settle()
    assert set(node.state.originals) == {QUOTA}
    node.say(POD, "-1")
    assert node.reading(POD) == KnobReading(-1) and node.reading().last_written == 5000


def test_a_memory_limit_that_would_kill_is_as_low_as_it_can_be(node: Node) -> None:
    """The pod holds more, in part in kernel memory: what it holds is its limit, which comes down with it; it is told."""
    node.say(V2_MEMORY, "max")
    folder = node.executor.path(V2_MEMORY).parent
    lists = "inactive_anon 0\nactive_anon 9000000\ninactive_file 0\nactive_file 0\nunevictable 0\n"
    (folder / "memory.stat").write_text(f"anon 0\n{lists}")
    for charged, said in ((40 << 20, "46137344"), (41 << 20, "46137344"), (20 << 20, "25165824"), (8 << 20, "9437184")):
        (folder / "memory.current").write_text(f"{charged}\n")
        node.apply(write(9 << 20, knob=V2_MEMORY))
        node.settle()
        assert node.said(V2_MEMORY) == said
        assert node.reading(V2_MEMORY) == KnobReading(int(said), int(said), -1)
        (outcome,) = node.apply(write(9 << 20, knob=V2_MEMORY))
        node.settle()
        waits = said != "9437184"
        assert ("comes down with it" in outcome.error) is waits and not outcome.dropped
        assert outcome.cause is (Reason.LIMIT_NOT_WRITTEN if waits else None)


def test_nobody_waits_for_the_kernel_to_reclaim(node: Node) -> None:
    """Neither the tick's other writes nor the brake; of the limits that wait meanwhile the newest is written."""
    node.say(V2_MEMORY, "max")
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    slow = Reclaiming(node)
    for value in (8_000_000, 7_000_000, 6_000_000):
        outcomes = node.apply(write(value, knob=V2_MEMORY), write(value // 1000))
        assert [outcome.error for outcome in outcomes] == ["", ""] and node.said(QUOTA) == str(value // 1000)
    slow.begun("9000000")
    assert node.executor.lower(QUOTA, 4000) == 6000 and not node.executor.idle()
    slow.end()
    assert node.said(V2_MEMORY) == "6000000"


def test_nobody_waits_for_the_lock_of_cgroups(node: Node) -> None:
    """Best effort may hold it as `cgroup.max.descendants` is written: neither the tick nor the brake's cut waits."""
    cgroups = msgspec.structs.replace(V2_MEMORY, file="cgroup.max.descendants")
    node.say(cgroups, "max")
    node.apply(write(9000), write(1000, knob=cgroups))
    node.settle()
    assert node.said(cgroups) == "1000"
    slow = Reclaiming(node, cgroups)
    applying = threading.Thread(target=node.apply, args=[write(900, 1000, knob=cgroups)], daemon=True)
    applying.start()
    slow.begun("1000")
    applying.join(PATIENCE_SECONDS)
    assert not applying.is_alive() and not node.executor.idle()
    assert node.executor.lower(QUOTA, 4000) == 9000
    node.clock.now += 5
    assert "does not answer" in node.apply(write(900, 1000, knob=cgroups))[0].error
    slow.end()
    assert node.said(cgroups) == "900"


def test_a_kernel_that_does_not_answer_keeps_no_other_memory_limit(node: Node) -> None:
    """Reclaim waits for a file system that hangs; after five seconds that is told, and others get a thread of their own."""
    other = msgspec.structs.replace(V2_MEMORY, cgroup="/kubepods.slice/pody")
    for knob in (V2_MEMORY, other):
        node.say(knob, "max")
        node.apply(write(9_000_000, knob=knob))
    node.settle()
    slow = Reclaiming(node)
    node.apply(write(8_000_000, knob=V2_MEMORY))
    slow.begun("9000000")
    assert [outcome.error for outcome in node.apply(write(4_000_000, knob=other))] == [""]
    node.clock.now += 5
    told, quiet = node.apply(write(8_000_000, knob=V2_MEMORY), write(4_000_000, knob=other))
    assert "does not answer" in told.error and told.cause is Reason.LIMIT_NOT_WRITTEN and not quiet.error
    deadline = time.monotonic() + PATIENCE_SECONDS
    while node.said(other) != "4000000":
        assert time.monotonic() < deadline
        time.sleep(0.01)
    slow.end()
    assert node.said(V2_MEMORY) == "8000000" and not node.apply(write(8_000_000, knob=V2_MEMORY))[0].error
    node.settle()


@pytest.mark.parametrize(("charged", "held"), [("1000", "4000000"), ("5000000", "8388608")])
def test_the_first_limit_of_a_cgroup_waits_for_no_other(node: Node, charged: str, held: str) -> None:
    """While the kernel reclaims for another: where it holds more, it gets no more meanwhile, and comes down later."""
    fresh = msgspec.structs.replace(V2_MEMORY, cgroup="/kubepods.slice/pody")
    node.say(V2_MEMORY, "max")
    node.say(fresh, "max")
    node.executor.path(fresh).with_name("memory.current").write_text(f"{charged}\n")
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    slow = Reclaiming(node)
    node.apply(write(8_000_000, 9_000_000, knob=V2_MEMORY))
    slow.begun("9000000")
    node.apply(write(4_000_000, knob=fresh))
    deadline = time.monotonic() + PATIENCE_SECONDS
    while node.said(fresh) != held:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert node.said(V2_MEMORY) == "9000000"
    slow.end()
    assert node.said(fresh) == "4000000"


def test_what_the_kernel_shows_while_it_reclaims_is_ours(node: Node) -> None:
    """cgroup v2 has the new limit at once and the answer late: nobody else was tighter."""
    node.say(V2_MEMORY, "max")
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    slow = Reclaiming(node)
    node.apply(write(8_000_000, knob=V2_MEMORY))
    slow.begun("8000000")
    assert node.reading(V2_MEMORY) == KnobReading(8_000_000, 8_000_000, -1)
    slow.end()


def test_a_memory_limit_that_fails(node: Node) -> None:
    """The tick hears of it when it plans again, until one has succeeded."""
    node.say(V2_MEMORY, "max")
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    path = node.executor.path(V2_MEMORY)
    path.unlink()
    path.mkdir()
    errors = []
    for value in (8_000_000, 8_000_000, 7_000_000, 7_000_000):
        errors += [outcome.error for outcome in node.apply(write(value, knob=V2_MEMORY))]
        node.settle()
    assert [bool(error) for error in errors] == [False, True, True, True] and "Is a directory" in errors[1]
    path.rmdir()
    node.say(V2_MEMORY, "9000000")
    for told in (True, False):
        assert bool(node.apply(write(7_000_000, knob=V2_MEMORY))[0].error) == told
        node.settle()
    assert node.said(V2_MEMORY) == "7000000"


def test_the_original_of_a_memory_limit_comes_first(node: Node) -> None:
    """A disk that is full keeps it from being written."""
    node.say(V2_MEMORY, "max")
    blocked = node.state.path.with_name("agent.json.new")
    blocked.mkdir()
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    assert node.said(V2_MEMORY) == "max"
    assert "the state file cannot be written" in node.apply(write(9_000_000, knob=V2_MEMORY))[0].error
    node.settle()
    blocked.rmdir()
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    assert node.said(V2_MEMORY) == "9000000" and node.executor.restore().changed == 1


def test_what_failed_on_a_full_disk_goes_with_its_cgroup(node: Node) -> None:
    """Pods come and go for as long as the disk is full."""
    node.say(V2_MEMORY, "max")
    node.state.path.with_name("agent.json.new").mkdir()
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    path = node.executor.path(V2_MEMORY)
    path.unlink()
    path.parent.rmdir()
    node.clock.now += 61
    node.apply()
    node.settle()
    node.say(V2_MEMORY, "max")
    assert node.apply(write(9_000_000, knob=V2_MEMORY))[0].error == ""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the disk: these wait in vain for it."""
    monkeypatch.setattr(executor, "_DISK_SECONDS", 0.2)


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_hangs(node: Node) -> None:
    """The tick goes on without the writes that need it; those whose original is known, and the brake, do not."""
    node.executor.remember(QUOTA)
    node.say(POD, "-1")
    node.state.hang()
    for quota in (9000, 8000):
        new, known = node.apply(write(4000, knob=POD), write(quota))
        assert "not on the disk yet" in new.error and not known.error and node.said(POD) == "-1"
    assert node.executor.lower(QUOTA, 5000) == 8000 and not node.executor.idle()
    node.state.answer()
    node.settle()
    assert not node.apply(write(4000, knob=POD))[0].error and node.said(POD) == "4000"


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_hangs_keeps_no_other_memory_limit(node: Node) -> None:
    """Their thread does not wait with one whose original cannot be saved."""
    new = msgspec.structs.replace(V2_MEMORY, cgroup="/kubepods.slice/pody")
    for knob in (V2_MEMORY, new):
        node.say(knob, "max")
    node.apply(write(9_000_000, knob=V2_MEMORY))
    node.settle()
    node.state.hang()
    node.apply(write(4_000_000, knob=new), write(8_000_000, knob=V2_MEMORY))
    deadline = time.monotonic() + PATIENCE_SECONDS / 2
    while node.said(V2_MEMORY) != "8000000" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (node.said(V2_MEMORY), node.said(new)) == ("8000000", "max")
    node.state.answer()
    node.settle()
    node.apply(write(4_000_000, knob=new))
    node.settle()
    assert node.said(new) == "4000000"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("known", [True, False], ids=["since a tick", "from now on"])
def test_a_disk_that_hangs_holds_no_cut_up(node: Node, known: bool) -> None:
    """One that would need it is refused, whether anybody knows of it yet or not; the next that does not is made."""
    node.executor.remember(QUOTA)
    node.say(POD, "9000")
    node.state.hang()
    if known:
        node.apply(write(4000, knob=POD))
    began = time.monotonic()
    assert node.executor.lower(POD, 5000) is None and node.executor.failed_cuts == 1
    assert node.executor.lower(QUOTA, 5000) == -1
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    node.state.answer()
    node.settle()


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_hangs_keeps_nothing_from_being_given_back(node: Node) -> None:
    """Neither the tick, which forgets what a file said, nor the brake beside it waits for a save that never ends."""
    node.executor.remember(QUOTA)
    new = msgspec.structs.replace(POD, cgroup="/kubepods/besteffort/pody")
    for knob in (POD, new):
        node.say(knob, "-1")
    node.apply(write(5000, knob=POD))
    node.state.hang()
    node.apply(write(4000, knob=new))
    began = time.monotonic()
    (outcome,) = node.apply(msgspec.structs.replace(write(-1, knob=POD), gives_back=True))
    assert (outcome.error, node.said(POD), POD in node.state.originals) == ("", "-1", False)
    assert node.executor.lower(QUOTA, 5000) == -1
    assert time.monotonic() - began < PATIENCE_SECONDS / 2
    node.state.answer()
    node.settle()
    node.restart()
    assert set(node.state.originals) == {QUOTA}


def test_the_first_cut_needs_no_disk(node: Node) -> None:
    """What was remembered at the start is enough; a disk that refuses even that is told of later."""
    node.executor.remember(QUOTA)
    node.state.path.with_name("agent.json.new").mkdir()
    node.executor.remember(POD)
    assert node.executor.lower(QUOTA, 5000) == -1 and node.said(QUOTA) == "5000"


def unsaved(node: Node) -> str:
    return node.executor.readings(()).unsaved


def test_a_disk_that_fills_up_later(node: Node) -> None:
    """What is known is written as before; that nothing new can be saved is found out within a minute, and each tick
    tells whether it still is so.
    """
    node.apply(write(9000))
    blocked = node.state.path.with_name("agent.json.new")
    blocked.mkdir()
    node.clock.now += 59
    assert node.apply(write(8000))[0].error == ""
    node.settle()
    assert unsaved(node) == ""
    node.clock.now += 2
    assert node.apply(write(7000))[0].error == ""
    node.settle()
    assert unsaved(node).startswith(f"the state file cannot be written: {node.state.path}: ")
    blocked.rmdir()
    assert unsaved(node) and node.apply(write(6000))[0].error == ""
    node.settle()
    assert unsaved(node) == "" and node.said(QUOTA) == "6000"


def test_whoever_finds_the_disk_full_tells_all(node: Node) -> None:
    """The first cut of the brake, a record of evictions, the limit of a new pod, whose outcome has the code."""
    node.say(POD, "-1")
    blocked = node.state.path.with_name("agent.json.new")
    for attempt in (
        lambda: node.executor.lower(QUOTA, 5000),
        lambda: node.apply(write(4000, knob=POD)),
        lambda: node.executor.remember(QUOTA),
    ):
        blocked.mkdir()
        attempt()
        node.settle()
        assert unsaved(node) and node.apply(write(5000))[0].cause is Reason.STATE_NOT_SAVED
        blocked.rmdir()
        node.state.save_again()
        assert unsaved(node) == ""


def test_a_start_on_a_full_disk_tells_at_once(node: Node) -> None:
    """All originals are known from the agent before, and nothing needs the disk."""
    node.apply(write(9000))
    node.settle()
    node.restart()
    blocked = node.state.path.with_name("agent.json.new")
    blocked.mkdir()
    assert node.apply(write(8000))[0].error == ""
    node.settle()
    assert unsaved(node) and node.said(QUOTA) == "8000"


@pytest.mark.usefixtures("impatient")
def test_a_disk_that_does_not_answer_counts_as_full(node: Node) -> None:
    """Not a moment's patience: one that is merely busy has answered within five seconds."""
    node.state.hang()
    assert node.apply(write(9000))[0].cause is Reason.LIMIT_NOT_WRITTEN and unsaved(node) == ""
    node.clock.now += 4.9
    assert unsaved(node) == ""
    node.clock.now += 0.2
    assert unsaved(node).endswith("the disk does not answer")
    assert node.apply(write(9000))[0].cause is Reason.STATE_NOT_SAVED
    node.state.answer()
    node.settle()
    node.apply(write(9000))
    node.settle()
    assert unsaved(node) == "" and node.said(QUOTA) == "9000"


def test_what_somebody_loosened(node: Node) -> None:
    """At the moment of the reading, or between two when the brake looked; told once, and not of our own values."""
    node.apply(write(9000))
    node.executor.look(QUOTA)
    assert not node.reading().loosened
    node.say(QUOTA, "-1")
    assert node.reading().loosened
    node.apply(write(9000))
    node.say(QUOTA, "-1")
    node.executor.look(QUOTA)
    node.say(QUOTA, "9000")
    assert [node.reading().loosened for _ in range(2)] == [True, False]
    node.apply(write(12_000, 9000))
    node.executor.lower(QUOTA, 3000)
    node.say(QUOTA, "2000")
    node.executor.look(QUOTA)
    assert not node.reading().loosened


def test_what_somebody_loosened_is_put_back_by_the_brake(node: Node) -> None:
    """The tick may be most of a second away, and a kubelet with the systemd driver resets it as each pod comes and goes."""
    node.apply(write(9000))
    node.say(QUOTA, "-1")
    node.executor.look(QUOTA)
    assert node.said(QUOTA) == "9000" and node.reading().loosened
    node.executor.lower(QUOTA, 3000)
    node.say(QUOTA, "9000")
    node.executor.look(QUOTA)
    assert node.said(QUOTA) == "3000"
    node.say(QUOTA, "2000")
    node.executor.look(QUOTA)
    assert node.said(QUOTA) == "2000", "a tighter value is respected"
    assert node.executor.readings((QUOTA,)).brake_cuts == 1, "it is no cut: nothing planned is dropped for it"


def test_a_shorter_period_loosens_the_quota(node: Node) -> None:
    """The same quota ten times as often."""
    period = Knob(QUOTA.cgroup, "cpu", "cpu.cfs_period_us")
    node.say(period, "50000")
    node.apply(write(100_000, 50_000, period))
    for text, expected in (("10000", True), ("100000", False), ("1000000", False)):
        node.say(period, text)
        assert node.reading(period).loosened == expected


def test_an_observer_keeps_nothing(node: Node) -> None:
    """What an agent before it wrote and somebody loosened since is not for an observer to defend."""
    node.apply(write(5000))
    node.state.close()
    observer = KnobExecutor(node.root, StateFile(node.state.path), node.clock, dry=True)
    observer.readings((QUOTA,))
    node.say(QUOTA, "-1")
    observer.look(QUOTA)
    assert observer.readings((QUOTA,)).readings[QUOTA] == KnobReading(-1, 5000, -1)


def test_why_a_write_failed(node: Node) -> None:
    """Each cause has its code; what was dropped has none."""
    path = node.executor.path(QUOTA)
    node.apply(write(9000))
    path.unlink()
    path.symlink_to("/dev/null")
    node.state.remember({QUOTA: "-1"})
    assert node.apply(write(8000))[0].cause is Reason.LIMIT_NOT_WRITTEN
    path.unlink()
    assert node.apply(write(8000)) == (WriteOutcome(write(8000), dropped=True),)


def test_observing_changes_nothing(node: Node) -> None:
    """Neither control files nor the state file; it reads and answers as ever."""
    executor = KnobExecutor(node.root, node.state, node.clock, dry=True)
    executor.remember(QUOTA)
    assert executor.apply((write(5000),), 0) == (WriteOutcome(write(5000), dropped=True),)
    assert executor.lower(QUOTA, 5000) is None and executor.failed_cuts == 0
    assert executor.readings((QUOTA,)).readings[QUOTA] == KnobReading(-1)
    node.clock.now += 61
    executor.apply((write(5000),), 0)
    assert executor.readings(()).unsaved == ""
    assert node.said(QUOTA) == "-1" and not node.state.path.exists()


# what it said, what we wrote -> what is written back, and how the file ends
GIVEN_BACK: dict[str, tuple[Knob, str, Value, Value, str]] = {
    "byte for byte": (V2_MEMORY, "max", 8 << 20, -1, "max"),
    "an equal value is another text": (V2_QUOTA, "50000 50000", 100_000, 100_000, "50000 50000"),
    "another program's value stays": (V2_QUOTA, "max 100000", 70_000, 60_000, "60000 100000"),
}


@pytest.mark.parametrize(("knob", "before", "ours", "back", "after"), GIVEN_BACK.values(), ids=GIVEN_BACK)
def test_what_is_given_back(node: Node, knob: Knob, before: str, ours: Value, back: Value, after: str) -> None:
    """The file says what it said before us, and nothing of it is known any more, on the disk neither."""
    node.say(knob, before)
    if node.reading(knob).kernel != ours:
        node.apply(write(ours, knob=knob))
    else:
        node.executor.remember(knob)
        node.say(knob, "100000 100000")
    node.settle()
    if after == "60000 100000":
        node.say(knob, after)
    (outcome,) = node.apply(msgspec.structs.replace(write(back, knob=knob), gives_back=True))
    node.settle()
    assert (outcome.error, node.said(knob), knob in node.state.originals) == ("", after, False)
    assert node.reading(knob).last_written is None and node.reading(knob).original is None
    node.restart()
    assert knob not in node.state.originals and node.reading(knob).last_written is None


def test_an_original_that_is_refused_stays_known(node: Node) -> None:
    """It is tried again, and told each time."""
    node.say(POD, "-1")
    node.apply(write(5000, knob=POD))
    node.say(POD, "garbage")
    (outcome,) = node.apply(msgspec.structs.replace(write(-1, knob=POD), gives_back=True))
    assert outcome.error and POD in node.state.originals


def test_a_memory_limit_that_cannot_be_given_back_yet(node: Node) -> None:
    """More is held than it allows: as much as that needs, until less is held; its original is no less known."""
    node.say(V2_MEMORY, str(8 << 20))
    folder = node.executor.path(V2_MEMORY).parent
    node.apply(write(64 << 20, knob=V2_MEMORY))
    node.settle()
    lists = "inactive_anon 0\nactive_anon 9000000\ninactive_file 0\nactive_file 0\nunevictable 0\n"
    (folder / "memory.stat").write_text(f"anon 0\n{lists}")
    (folder / "memory.current").write_text(f"{32 << 20}\n")
    back = msgspec.structs.replace(write(8 << 20, 64 << 20, V2_MEMORY), gives_back=True)
    node.apply(back)
    node.settle()
    assert (32 << 20) <= int(node.said(V2_MEMORY)) < (64 << 20) and V2_MEMORY in node.state.originals
    (folder / "memory.current").write_text(f"{4 << 20}\n")
    node.apply(back)
    node.settle()
    assert node.said(V2_MEMORY) == str(8 << 20) and V2_MEMORY not in node.state.originals


def test_a_file_wanted_again_at_once(node: Node) -> None:
    """What it says then is its original, whatever the disk still has."""
    node.say(POD, "-1")
    node.apply(write(5000, knob=POD))
    node.state.hang()
    node.apply(msgspec.structs.replace(write(-1, knob=POD), gives_back=True))
    node.state.answer()
    node.settle()
    node.apply(write(6000, knob=POD))
    node.settle()
    assert (node.said(POD), dict(node.state.originals)) == ("6000", {POD: "-1"})


def test_files_that_nothing_wants_are_read_in_turn(node: Node) -> None:
    """So many in a tick; those that claims name, or do not speak of, are left alone; an observer reads none."""
    pods = [Knob(f"/kubepods/besteffort/pod{number}", "pids", "pids.max") for number in range(40)]
    for knob in (*pods, POD):
        node.say(knob, "9")
        node.apply(write(5, knob=knob))
    wanted = KnobClaims(Layout(), frozenset(pods[:1]), frozenset(knob.cgroup for knob in (*pods[:39], POD)))
    first, second = (node.executor.readings((), wanted).readings for _ in range(2))
    assert len(first) == len(second) == 32
    assert {*first, *second} == set(pods[1:39]), "the quota stays, and the last pod is not spoken for"
    observer = KnobExecutor(node.root, node.state, node.clock, dry=True)
    assert observer.readings((), wanted).readings == {}

"""The single writer: originals first, read back, one lock with the brake, one owner of the state file."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.core.observation import Absence, Knob, KnobReading, Missing
from agent.core.plan import Write
from agent.edge.executor import KnobExecutor, Originals
from agent.ports import WriteOutcome
from model.decision import Decision, Term, Unit
from model.fault import ConfigurationFault
from model.reason import Reason

QUOTA = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "cpu/kubepods/besteffort"
    folder.mkdir(parents=True)
    (folder / QUOTA.file).write_text("-1\n")
    return tmp_path


def executor(root: Path) -> KnobExecutor:
    return KnobExecutor(root, Originals(root / "agent.json"), lambda: 7.0)


def write(value: int, previous: int) -> Write:
    decision = Decision(QUOTA.subject, QUOTA.file, value, Unit.MICROSECONDS, Reason.QUOTA_LOWERED, (Term("x", value),))
    return Write(QUOTA, value, previous, decision)


def held(root: Path) -> str:
    return (root / "cpu/kubepods/besteffort" / QUOTA.file).read_text().strip()


def test_write_and_read_back(root: Path) -> None:
    """What was written is known as ours from then on."""
    one = executor(root)
    assert one.apply((write(5000, -1),), 0)[0].error == ""
    assert held(root) == "5000"
    assert one.readings((QUOTA,)).readings[QUOTA] == KnobReading(5000, 5000)


def test_the_original_is_on_disk_before_the_first_write(root: Path) -> None:
    """And later writes do not change it."""
    one = executor(root)
    one.apply((write(5000, -1), write(4000, 5000)), 0)
    state = msgspec.json.decode((root / "agent.json").read_bytes())
    assert state["version"] == 2 and [entry["text"] for entry in state["originals"]] == ["-1"]
    assert (root / "agent.json").stat().st_mode & 0o777 == 0o600


def test_a_vanished_or_refused_knob_is_an_outcome(root: Path) -> None:
    """The error names the file; nothing is raised and other writes go on."""
    one = executor(root)
    gone = msgspec.structs.replace(write(5000, -1), knob=Knob("/nope", "cpu", QUOTA.file))
    outcomes = one.apply((gone, write(5000, -1)), 0)
    assert "/cpu/nope/cpu.cfs_quota_us: no such file" in outcomes[0].error and outcomes[1].error == ""
    missing = one.read(Knob("/nope", "cpu", QUOTA.file))
    assert isinstance(missing, Missing) and missing.absence is Absence.GONE


def test_lower_only_lowers_and_is_counted(root: Path) -> None:
    """The brake's way in: a value that gives less, or nothing."""
    one = executor(root)
    assert one.lower(QUOTA, 9000) == -1
    assert one.lower(QUOTA, 9000) is None and one.lower(QUOTA, 10_000) is None
    found = one.readings((QUOTA,))
    assert (held(root), found.brake_cuts, found.last_cut_monotonic) == ("9000", 1, 7.0)


def test_a_widening_write_decided_before_a_cut_is_dropped(root: Path) -> None:
    """So is one that narrows what the tick saw, but not what the brake left; a value below that is written."""
    one = executor(root)
    one.apply((write(9000, -1),), 0)
    one.lower(QUOTA, 4000)
    assert one.apply((write(10_000, 9000),), 0)[0].dropped and one.apply((write(6000, 9000),), 0)[0].dropped
    assert one.apply((write(3000, 9000),), 0)[0] == WriteOutcome(write(3000, 9000)) and held(root) == "3000"
    assert one.apply((write(6000, 3000),), 1)[0] == WriteOutcome(write(6000, 3000)) and held(root) == "6000"


def test_restore(root: Path) -> None:
    """Originals come back, once; a second restore has nothing to do."""
    one = executor(root)
    one.apply((write(5000, -1),), 0)
    assert one.restore() == 1 and held(root) == "-1"
    assert one.restore() == 0 and not (root / "agent.json").exists()


def test_one_owner_and_a_readable_state_file(root: Path) -> None:
    """A second agent and a broken state file are each one clear line."""
    owner = Originals(root / "agent.json")
    with pytest.raises(ConfigurationFault, match=r"agent\.json: another agent uses this state file"):
        Originals(root / "agent.json")
    owner.close()
    (root / "agent.json").write_text('{"version": 1, "originals": [{"knob"')
    with pytest.raises(ConfigurationFault, match=r"agent\.json: unreadable state file: .*truncated"):
        Originals(root / "agent.json")


def test_no_write_without_a_durable_original(root: Path) -> None:
    """A full disk: neither the first write nor the second happens, and nothing is forgotten."""
    state = root / "state"
    state.mkdir()
    one = KnobExecutor(root, Originals(state / "agent.json"))
    (state / "agent.json.new").mkdir()
    for _ in range(2):
        assert one.apply((write(5000, -1),), 0)[0].error and held(root) == "-1"
    (state / "agent.json.new").rmdir()
    assert one.apply((write(5000, -1),), 0)[0].error == "" and held(root) == "5000"
    assert one.restore() == 1 and held(root) == "-1"


def test_a_refused_cut_is_counted(root: Path) -> None:
    """The brake could not cut: that must show."""
    one = executor(root)
    (root / "agent.json.new").mkdir()
    assert one.lower(QUOTA, 5000) is None and one.failed_cuts == 1 and held(root) == "-1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"version": 9, "originals": []}', "version 9 is none of (1, 2)"),
        (
            '{"originals": [{"knob": {"cgroup": "/a", "controller": "", "file": "cpu.max"}, "text": "5; rm"}]}',
            "is not a",
        ),
        ('{"originals": [{"knob": {"cgroup": "/a", "controller": "cpu", "file": "cpu.shares"}}]}', "is not a"),
        (
            '{"originals": [{"knob": {"cgroup": "/../../etc", "controller": "cpu", "file": "x"}, "value": 1}]}',
            "'/../../etc' is no",
        ),
        (
            '{"originals": [{"knob": {"cgroup": "", "controller": "cpu", "file": "x"}, "value": 1}]}',
            "names no control file",
        ),
    ],
)
def test_a_strange_state_file_is_refused(root: Path, text: str, told: str) -> None:
    """Another version's, or one that points out of the tree: nothing is written from it."""
    (root / "agent.json").write_text(text)
    with pytest.raises(ConfigurationFault, match="unreadable state file") as error:
        Originals(root / "agent.json")
    assert told in str(error.value) and (root / "agent.json").exists()


V2_QUOTA = Knob("/kubepods.slice/kubepods-besteffort.slice", "", "cpu.max")


@pytest.fixture
def v2_root(tmp_path: Path) -> Path:
    folder = tmp_path / V2_QUOTA.cgroup.lstrip("/")
    folder.mkdir(parents=True)
    (folder / "cpu.max").write_text("max 100000\n")
    return tmp_path


def test_quota_and_period_in_one_file(v2_root: Path) -> None:
    """cgroup v2: both are written, the number is the quota of a period of 100 ms, and restore lifts the limit."""
    one = executor(v2_root)
    file = v2_root / "kubepods.slice/kubepods-besteffort.slice/cpu.max"
    planned = msgspec.structs.replace(write(5000, -1), knob=V2_QUOTA)
    assert one.read(V2_QUOTA) == -1
    assert one.apply((planned,), 0)[0].error == "" and file.read_text() == "5000 100000"
    file.write_text("20000 50000\n")
    assert one.read(V2_QUOTA) == 40_000
    assert one.lower(V2_QUOTA, 4000) == 40_000 and file.read_text() == "4000 100000"
    assert one.restore() == 1 and file.read_text() == "max 100000"


@pytest.mark.parametrize("text", ["", "max", "5000", "x 100000", "5000 0", "5000 -1", "-5 100000 7"])
def test_a_file_that_makes_no_sense(v2_root: Path, text: str) -> None:
    """Unreadable is a value that says what stands there; the brake leaves it alone."""
    one = executor(v2_root)
    (v2_root / "kubepods.slice/kubepods-besteffort.slice/cpu.max").write_text(text)
    found = one.read(V2_QUOTA)
    assert isinstance(found, Missing) and found.absence is Absence.UNREADABLE and found.detail
    assert one.lower(V2_QUOTA, 1) is None and one.failed_cuts == 0


def test_restoring_skips_what_is_gone(root: Path) -> None:
    """A cgroup that was removed has no limits to restore; the others are put back."""
    one = executor(root)
    gone = Knob("/kubepods/besteffort", "cpu", "cpu.shares")
    one._originals.remember(gone, "1024")
    one.apply((write(5000, -1),), 0)
    assert one.restore() == 1 and held(root) == "-1" and not (root / "agent.json").exists()


@pytest.mark.parametrize("text", ["50000 50000", "1000 1000000", "max 50000", "max 100000"])
def test_an_original_comes_back_with_its_period(v2_root: Path, text: str) -> None:
    """A quota counted per 100 ms would be another text, and of 1000 in a second one the kernel refuses."""
    file = v2_root / "kubepods.slice/kubepods-besteffort.slice/cpu.max"
    file.write_text(f"{text}\n")
    one = executor(v2_root)
    one.apply((msgspec.structs.replace(write(5000, -1), knob=V2_QUOTA),), 0)
    assert file.read_text() == "5000 100000"
    assert one.restore() == 1 and file.read_text() == text


def test_a_state_file_of_the_first_version_is_read(v2_root: Path) -> None:
    """It has the number alone, and is written anew as the second with the next original."""
    state = v2_root / "agent.json"
    entry = {"knob": msgspec.to_builtins(V2_QUOTA), "value": 40_000}
    state.write_bytes(msgspec.json.encode({"version": 1, "originals": [entry]}))
    originals = Originals(state)
    assert originals.all() == {V2_QUOTA: "40000 100000"}
    originals.remember(QUOTA, "-1")
    originals.close()
    assert msgspec.json.decode(state.read_bytes())["version"] == 2
    again = Originals(state)
    assert again.all() == {V2_QUOTA: "40000 100000", QUOTA: "-1"}
    again.close()


@pytest.mark.parametrize(("text", "ours"), [("5000", 5000), ("-1", None)])
def test_what_an_agent_before_left_is_ours(root: Path, text: str, ours: int | None) -> None:
    """So that it can be lifted; a knob that holds its original again was given back, and is somebody else's."""
    before = Originals(root / "agent.json")
    before.remember(QUOTA, "-1")
    before.close()
    file = root / "cpu/kubepods/besteffort" / QUOTA.file
    file.unlink()
    one = executor(root)
    assert one.readings((QUOTA,)).readings[QUOTA].ours is None
    file.write_text(f"{text}\n")
    assert one.readings((QUOTA,)).readings[QUOTA] == KnobReading(int(text), ours)
    file.write_text("7000\n")
    assert one.readings((QUOTA,)).readings[QUOTA] == KnobReading(7000, ours)


@pytest.mark.parametrize("broken", ["state", "state/agent.lock"])
def test_a_disk_that_cannot_be_written_is_one_line(root: Path, broken: str) -> None:
    """The folder, or the lock in it, cannot be made: the flag is named."""
    path = root / broken
    if path.suffix:
        path.mkdir(parents=True)
    else:
        path.write_text("no folder")
    with pytest.raises(ConfigurationFault, match=r"agent\.json: cannot be kept: .*check --state-file"):
        Originals(root / "state/agent.json")

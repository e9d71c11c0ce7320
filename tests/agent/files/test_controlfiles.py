"""Control files: absence is a value, text and value are told apart, nothing is made that does not exist.

What only a real kernel refuses is in tests/agent/kernel.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.core.observe.knobs import UNLIMITED
from agent.core.observe.observation import Absence, Knob, Missing, Value
from agent.files.controlfiles import ControlFiles, KnobText

QUOTA = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
V2_QUOTA = Knob("/kubepods.slice", "", "cpu.max")
V2_CPUS = Knob("/kubepods.slice", "", "cpuset.cpus")
V2_MEMORY = Knob("/kubepods.slice/podx", "", "memory.max")
MI = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def files(root: Path) -> ControlFiles:
    return ControlFiles(root, lambda _knob, _texts: None)


def make(files: ControlFiles, knob: Knob, text: str) -> Path:
    path = files.path(knob)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("knob", "text", "expected"),
    [
        (QUOTA, "-1\n", KnobText(-1, "-1")),
        (V2_QUOTA, "20000 50000\n", KnobText(40_000, "20000 50000")),
        (V2_CPUS, "\n", KnobText("", "")),
        (V2_MEMORY, "max\n", KnobText(-1, "max")),
    ],
)
def test_a_value_and_its_text(files: ControlFiles, knob: Knob, text: str, expected: KnobText) -> None:
    """Restoring needs the text, deciding the value."""
    make(files, knob, text)
    assert files.held(knob) == expected


def test_absence(files: ControlFiles) -> None:
    """Gone, or there and not understood; the path is named."""
    gone = files.held(QUOTA)
    assert isinstance(gone, Missing) and (gone.absence, gone.detail) == (Absence.GONE, "no such file")
    make(files, QUOTA, "soon\n")
    strange = files.held(QUOTA)
    assert isinstance(strange, Missing) and strange.absence is Absence.UNREADABLE and "soon" in strange.detail
    assert strange.path == str(files.path(QUOTA))


@pytest.mark.parametrize(
    ("knob", "value", "text"), [(QUOTA, 5000, "5000"), (V2_CPUS, "0-1", "0-1"), (V2_CPUS, "", "\n")]
)
def test_writing(files: ControlFiles, knob: Knob, value: Value, text: str) -> None:
    """An empty list is an empty line, since nothing at all would change nothing."""
    path = make(files, knob, "3\n")
    assert files.put(knob, value) == value and path.read_text() == text


def test_nothing_is_made(files: ControlFiles) -> None:
    """A cgroup that is gone does not come back as a plain file."""
    make(files, QUOTA, "-1").unlink()
    with pytest.raises(FileNotFoundError):
        files.put(QUOTA, 5000)
    assert not files.path(QUOTA).exists()


V1_MEMORY = Knob("/kubepods/podx", "memory", "memory.limit_in_bytes")
LEAST = {
    "all of it is page cache, but for less than the limit": (90, -1, 64, 64),
    "a sixteenth above it, in steps of 4 MiB": (100, -1, 64, 76),
    "kernel memory counts": (230, -1, 64, 216),
    "never looser than what is in force": (100, 72, 64, 72),
    "what is in force is looser": (100, 80, 64, 76),
    "what is in force is tighter than the limit": (100, 32, 64, 76),
    "no limit is wanted": (100, 80, -1, -1),
}


@pytest.mark.parametrize(("knob", "level"), [(V2_MEMORY, "memory.current"), (V1_MEMORY, "memory.usage_in_bytes")])
@pytest.mark.parametrize(("charged", "held", "limit", "expected"), LEAST.values(), ids=LEAST.keys())
def test_the_least_memory_limit(
    files: ControlFiles, knob: Knob, level: str, charged: int, held: int, limit: int, expected: int
) -> None:
    """In MiB. What is charged beyond page cache cannot be dropped; 30 MiB are cache here, and 70 anonymous at most."""
    folder = make(files, knob, "9223372036854771712" if held < 0 else str(held * MI)).parent
    (folder / level).write_text(f"{charged * MI}\n")
    lists = ("inactive_anon 0", f"active_anon {min(charged - 30, 70) * MI}", f"inactive_file {30 * MI}")
    lines = ("anon 0", *lists, "active_file 0", "unevictable 0")
    prefix = "" if knob is V2_MEMORY else "total_"
    (folder / "memory.stat").write_text("".join(f"{prefix}{line}\n" for line in lines))
    assert files.least(knob, limit * MI if limit > 0 else limit) == (expected * MI if expected > 0 else expected)


def test_where_the_least_limit_cannot_be_told(files: ControlFiles) -> None:
    """Nothing can be read, or the file holds no memory's limit: the value itself."""
    assert [files.least(knob, 5) for knob in (V1_MEMORY, V2_MEMORY, QUOTA)] == [5, 5, 5]


@pytest.mark.parametrize(
    ("knob", "level", "charged", "expected"),
    [
        (V2_MEMORY, "memory.current", "5\n", True),
        (V2_MEMORY, "memory.current", "6\n", False),
        (V2_MEMORY, "memory.current", "x\n", False),
        (V2_MEMORY, "memory.usage_in_bytes", "5\n", False),
        (V1_MEMORY, "memory.usage_in_bytes", "5\n", True),
        (V1_MEMORY, "memory.usage_in_bytes", "6\n", False),
        (QUOTA, "memory.current", "5\n", False),
    ],
)
def test_whether_a_limit_fits(files: ControlFiles, knob: Knob, level: str, charged: str, expected: bool) -> None:
    """The kernel has it at once where no more is charged; what cannot be told may take long."""
    make(files, knob, "9").with_name(level).write_text(charged)
    assert files.fits(knob, 5) is expected


@pytest.mark.parametrize(
    ("exists", "expected"),
    [("kubepods/besteffort/podx", False), ("kubepods/besteffort", True), ("kubepods", True), ("", False)],
)
def test_a_cgroup_that_is_gone(files: ControlFiles, root: Path, exists: str, expected: bool) -> None:
    """A whole tree out of sight is a mount that is missing, not a pod that ended."""
    (root / "cpu" / exists).mkdir(parents=True)
    assert files.cgroup_is_gone(Knob("/kubepods/besteffort/podx", "cpu", "cpu.shares")) is expected


@pytest.mark.parametrize(
    ("controller", "file", "usage", "limit", "expected"),
    [
        ("memory", "memory.limit_in_bytes", 200 << 20, 64 << 20, 184 << 20),
        ("memory", "memory.limit_in_bytes", 80 << 20, 64 << 20, None),
        ("memory", "memory.limit_in_bytes", 81 << 20, 64 << 20, 65 << 20),
        ("memory", "memory.limit_in_bytes", 200 << 20, UNLIMITED, None),
        ("", "memory.max", 200 << 20, 64 << 20, 184 << 20),
        ("", "memory.max", 80 << 20, 64 << 20, None),
        ("", "memory.high", 200 << 20, 64 << 20, None),
    ],
)
def test_a_step_towards_a_limit(
    files: ControlFiles, root: Path, controller: str, file: str, usage: int, limit: int, expected: int | None
) -> None:
    """16 MiB below what is held; the last step is the limit itself. memory.high is never far below."""
    knob = Knob("/podx", controller, file)
    folder = root / controller / "podx"
    folder.mkdir(parents=True, exist_ok=True)
    for level in ("memory.usage_in_bytes", "memory.current"):
        (folder / level).write_text(f"{usage}\n")
    (folder / file).write_text("9223372036854771712\n")
    assert files.step_down(knob, limit) == expected
    assert files.held(knob) == KnobText(expected or UNLIMITED, str(expected or 9223372036854771712))


def test_more_cgroups_below_than_anybody_waits_for(root: Path) -> None:
    """A container may make them: they do not step aside one after the other while ticks and the brake wait."""
    files = ControlFiles(root, lambda _knob, _texts: None, most_below=3)
    top = make(files, QUOTA, "-1").parent
    for number in range(3):
        (top / f"c{number}").mkdir()
    assert files._make_room(QUOTA, 5000) is False
    (top / "c0/one-more").mkdir()
    with pytest.raises(OSError, match="more than 3 cgroups below it stand in the way"):
        files._make_room(QUOTA, 5000)

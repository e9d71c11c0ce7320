"""The state file: durable, atomic, one owner, readable by the versions after it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from agent.core.evict.eviction_request import EvictionRecord, PendingVictim
from agent.core.observe.observation import Knob
from agent.files.statefile import StateFile, originals_in
from model.fault import ConfigurationFault

QUOTA = Knob("/kubepods/besteffort", "cpu", "cpu.cfs_quota_us")
V2_QUOTA = Knob("/kubepods.slice", "", "cpu.max")
CPUSET = Knob("/kubepods/besteffort", "cpuset", "cpuset.cpus")
RECORD = EvictionRecord(5.0, None, {"uid": PendingVictim({"memory": 9}, 5.0, 15.0)})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.json"


def again(state: StateFile) -> StateFile:
    state.close()
    return StateFile(state.path)


def test_everything_survives(path: Path) -> None:
    """Originals with their text, evictions; only root may read it."""
    state = StateFile(path)
    state.remember({QUOTA: "-1", V2_QUOTA: "max 50000", CPUSET: "0-3"})
    state.keep(RECORD)
    assert path.stat().st_mode & 0o777 == 0o600 and msgspec.json.decode(path.read_bytes())["version"] == 3
    later = again(state)
    assert later.originals == {QUOTA: "-1", V2_QUOTA: "max 50000", CPUSET: "0-3"} and later.evictions == RECORD


def test_an_older_agent_goes_on_from_it(path: Path) -> None:
    """Among the originals that it reads is no file that it does not know: after a rollback it would not start."""
    pids = Knob("/kubepods/besteffort", "pids", "pids.max")
    state = StateFile(path)
    state.remember({QUOTA: "-1", pids: "max"})
    told = msgspec.json.decode(path.read_bytes())
    assert [original["knob"]["file"] for original in told["originals"]] == ["cpu.cfs_quota_us"]
    assert again(state).originals == {QUOTA: "-1", pids: "max"} == originals_in(path)


def test_the_first_word_counts(path: Path) -> None:
    """What is known already is neither changed nor written again."""
    state = StateFile(path)
    state.remember({QUOTA: "-1"})
    written = path.stat().st_ino
    state.remember({QUOTA: "5000"})
    assert path.stat().st_ino == written and state.originals == {QUOTA: "-1"}
    state.remember({QUOTA: "5000", CPUSET: "0"})
    assert again(state).originals == {QUOTA: "-1", CPUSET: "0"}


def test_an_unchanged_record_is_not_written(path: Path) -> None:
    """Most ticks evict nobody."""
    state = StateFile(path)
    state.keep(EvictionRecord())
    assert not path.exists()


def test_forgetting(path: Path) -> None:
    """Cgroups that are gone; the rest stays, evictions too."""
    state = StateFile(path)
    state.remember({QUOTA: "-1", CPUSET: "0"})
    state.keep(RECORD)
    state.forget([CPUSET])
    later = again(state)
    assert later.originals == {QUOTA: "-1"} and later.evictions == RECORD
    later.remove()
    assert not path.exists() and later.originals == {} and later.evictions == EvictionRecord()
    later.remove()


def test_a_full_disk_changes_nothing(path: Path) -> None:
    """The error is the caller's; what is in memory is what is on the disk."""
    state = StateFile(path)
    state.remember({QUOTA: "-1"})
    path.with_name("agent.json.new").mkdir()
    for change in (
        lambda: state.remember({CPUSET: "0"}),
        lambda: state.forget([QUOTA]),
        lambda: state.keep(RECORD),
    ):
        with pytest.raises(OSError):
            change()
    assert state.originals == again(state).originals == {QUOTA: "-1"} and state.evictions == EvictionRecord()


def test_one_owner(path: Path) -> None:
    """A second agent is told so, until the first one is gone."""
    state = StateFile(path)
    with pytest.raises(ConfigurationFault, match=r"agent\.json: another agent uses this state file"):
        StateFile(path)
    state.close()
    StateFile(path).close()


STRANGE = {
    "cut short": ('{"version": 1, "originals": [{"knob"', "truncated"),
    "of the future": ('{"version": 9, "originals": []}', "version 9 is none of (1, 2, 3)"),
    "no limit": (
        '{"originals": [{"knob": {"cgroup": "/a", "controller": "", "file": "cpu.max"}, "text": "5; rm"}]}',
        "is not a",
    ),
    "no text": ('{"originals": [{"knob": {"cgroup": "/a", "controller": "cpu", "file": "cpu.shares"}}]}', "is not a"),
    "no CPUs": (
        '{"originals": [{"knob": {"cgroup": "/a", "controller": "cpuset", "file": "cpuset.cpus"}, "text": "x"}]}',
        "is not a CPU list",
    ),
    "out of the tree": (
        '{"originals": [{"knob": {"cgroup": "/../../etc", "controller": "cpu", "file": "x"}, "value": 1}]}',
        "'/../../etc' is no",
    ),
    "nothing": (
        '{"originals": [{"knob": {"cgroup": "", "controller": "cpu", "file": "x"}, "value": 1}]}',
        "names no control file",
    ),
    "no record": ('{"version": 3, "evictions": {"pending": 5}}', "evictions"),
}


@pytest.mark.parametrize(("text", "told"), STRANGE.values(), ids=STRANGE.keys())
def test_a_strange_file_is_refused(path: Path, text: str, told: str) -> None:
    """One clear line; the file stays, and so does nobody's lock."""
    path.write_text(text)
    with pytest.raises(ConfigurationFault, match=r"agent\.json: unreadable state file") as error:
        StateFile(path)
    assert told in str(error.value) and path.read_text() == text
    path.unlink()
    StateFile(path).close()


OLD = {
    1: ([{"knob": msgspec.to_builtins(V2_QUOTA), "value": 40_000}], {V2_QUOTA: "40000 100000"}),
    2: ([{"knob": msgspec.to_builtins(V2_QUOTA), "text": "20000 50000"}], {V2_QUOTA: "20000 50000"}),
}


@pytest.mark.parametrize("version", OLD)
def test_an_older_version_is_read(path: Path, version: int) -> None:
    """The first had the number alone; it is written again as the newest with the next change."""
    entries, expected = OLD[version]
    path.write_bytes(msgspec.json.encode({"version": version, "originals": entries}))
    state = StateFile(path)
    assert state.originals == expected and state.evictions == EvictionRecord()
    state.remember({QUOTA: "-1"})
    later = again(state)
    assert later.originals == {**expected, QUOTA: "-1"}
    assert msgspec.json.decode(path.read_bytes())["version"] == 3


@pytest.mark.parametrize("broken", ["state", "state/agent.lock"])
def test_a_disk_that_cannot_be_written_is_one_line(tmp_path: Path, broken: str) -> None:
    """The folder, or the lock in it, cannot be made: the flag is named."""
    path = tmp_path / broken
    if path.suffix:
        path.mkdir(parents=True)
    else:
        path.write_text("no folder")
    with pytest.raises(ConfigurationFault, match=r"agent\.json: cannot be kept: .*check --state-file"):
        StateFile(tmp_path / "state/agent.json")


@pytest.mark.parametrize(("text", "expected"), [(None, {}), ("{", {}), ("", {})])
def test_looking_at_anothers_file(path: Path, text: str | None, expected: dict[Knob, str]) -> None:
    """It may be missing, or be somebody else's altogether; its lock is no matter."""
    if text is not None:
        path.write_text(text)
    assert originals_in(path) == expected
    path.unlink(missing_ok=True)
    state = StateFile(path)
    state.remember({QUOTA: "-1"})
    assert originals_in(path) == {QUOTA: "-1"}

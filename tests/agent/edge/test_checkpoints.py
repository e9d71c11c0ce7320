"""The checkpoint file: what is saved comes back; anything else is one line and a cold start."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.core.observe.prediction import Checkpoint, PeakSample, PredictionPolicy, PredictionState, checkpoint, train
from agent.edge import checkpoints
from agent.edge.checkpoints import CheckpointFile

NOW = 1_700_000_000.0
POLICY = PredictionPolicy()


def saved(pods: int = 3) -> Checkpoint:
    """Models of some pods after a few samples."""
    state = PredictionState()
    for minute in range(5):
        samples = [PeakSample(f"uid-{n}", 100 * minute + n, (n + minute) << 24) for n in range(pods)]
        state = train(state, samples, NOW + 60 * minute, POLICY)
    return checkpoint(state, POLICY)


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    """To the last bit, also over an older file; nobody else may read it; nothing is left beside it."""
    file = CheckpointFile(tmp_path / "deep" / "peaks.json")
    assert file.save(saved(1)) and file.save(saved(3))
    assert file.load() == saved(3)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["peaks.json"]
    assert (tmp_path / "deep" / "peaks.json").stat().st_mode & 0o777 == 0o600


def test_no_file_is_a_first_start(tmp_path: Path) -> None:
    """Said once, not as an error."""
    with capture_logs() as logs:
        assert CheckpointFile(tmp_path / "peaks.json").load() is None
    assert [entry["log_level"] for entry in logs] == ["info"]


GOOD = msgspec.json.encode(saved())
BAD: dict[str, bytes] = {
    "empty": b"",
    "truncated": GOOD[: len(GOOD) // 2],
    "one byte short": GOOD[:-1],
    "garbage": bytes(range(256)) * 4,
    "another document": b'{"version": 1, "originals": []}',
    "a list": b"[]",
    "a newer version": GOOD.replace(b'"version":1', b'"version":2'),
    "weights that are not base64": GOOD.replace(b'"weights":"', b'"weights":"*', 1),
    "weights cut short": b'{"cpu_half_life_seconds":43200.0,"memory_half_life_seconds":86400.0,"models":{"uid":{'
    b'"cpu":{"reference_seconds":0,"first":0,"weights":"AAAA"},"memory":{"reference_seconds":0,"first":0,"weights":""},'
    b'"since_seconds":0,"updated_seconds":0}},"version":1}',
    "nested without end": b"[" * 100_000,
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD.keys())
def test_a_bad_file_is_one_line_and_moved_aside(tmp_path: Path, content: bytes) -> None:
    """The line names the file, what is wrong, what it costs and where the file is now; the next start is clean."""
    path = tmp_path / "peaks.json"
    path.write_bytes(content)
    with capture_logs() as logs:
        assert CheckpointFile(path).load() is None
    (line,) = logs
    assert (line["log_level"], line["path"], line["moved_to"]) == ("error", str(path), f"{path}.bad")
    assert line["error"] and "learned again" in line["effect"]
    assert Path(f"{path}.bad").read_bytes() == content and not path.exists()
    assert CheckpointFile(path).save(saved()) and CheckpointFile(path).load() == saved()


def test_a_file_that_cannot_be_read_is_a_cold_start_too(tmp_path: Path) -> None:
    """A folder in its place, say."""
    path = tmp_path / "peaks.json"
    path.mkdir()
    with capture_logs() as logs:
        assert CheckpointFile(path).load() is None
    assert "Is a directory" in logs[0]["error"]


def test_size_is_bounded_both_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would not be read back is not written, and the last good file stays."""
    path = tmp_path / "peaks.json"
    file = CheckpointFile(path)
    assert file.save(saved(1))
    monkeypatch.setattr(checkpoints, "_LARGEST_BYTES", path.stat().st_size)
    assert not file.save(saved(3))
    assert file.load() == saved(1)
    path.write_bytes(path.read_bytes() + b" ")
    with capture_logs() as logs:
        assert file.load() is None
    assert "bytes" in logs[0]["error"]


def test_a_failed_write_costs_one_checkpoint(tmp_path: Path) -> None:
    """The last good file stays in place, the cause is logged, nothing is raised."""
    path = tmp_path / "peaks.json"
    assert CheckpointFile(path).save(saved(1))
    Path(f"{path}.new").mkdir()
    with capture_logs() as logs:
        assert not CheckpointFile(path).save(saved(3))
    assert logs[0]["path"] == str(path) and logs[0]["error"] == "Is a directory"
    assert CheckpointFile(path).load() == saved(1)

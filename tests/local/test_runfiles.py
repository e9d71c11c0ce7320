"""Files of a run: only what a run made is replaced or removed, and logs of the last three are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.runfiles import ENDPOINTS, LOCK, LOGS, MARK, OLD_LOGS, foreign, forget, mark, put_away_logs, refuse_strangers
from model.fault import ConfigurationFault


def filled(directory: Path, *names: str) -> Path:
    """Folders end in a slash."""
    for name in names:
        if name.endswith("/"):
            (directory / name).mkdir(parents=True)
        else:
            (directory / name).write_text(name)
    return directory


def names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_files_that_no_run_made_are_not_replaced(tmp_path: Path) -> None:
    """The first of them is named; a mark, or what a run left without one, allows it."""
    filled(tmp_path, "kubeconfig", "ready", "letter.txt")
    with pytest.raises(ConfigurationFault, match=r"kubeconfig.*no `sublet up` made it .give --dir a new or empty"):
        refuse_strangers(tmp_path, known=False)
    refuse_strangers(tmp_path, known=True)
    mark(tmp_path)
    refuse_strangers(tmp_path, known=False)


def test_other_files_are_in_nobodys_way(tmp_path: Path) -> None:
    """They are told, and stay."""
    refuse_strangers(filled(tmp_path, "letter.txt", "photos/"), known=False)
    mark(tmp_path)
    filled(tmp_path, LOCK, ENDPOINTS, "node-1/", "prediction.json", OLD_LOGS[0] + "/")
    assert foreign(tmp_path) == ["letter.txt", "photos"]


def test_a_link_is_no_mark(tmp_path: Path) -> None:
    """Anybody could have made it."""
    filled(tmp_path, "ready", "elsewhere")
    (tmp_path / MARK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationFault):
        refuse_strangers(tmp_path, known=False)


def test_a_mark_is_made_once(tmp_path: Path) -> None:
    """For its owner alone."""
    mark(tmp_path)
    before = (tmp_path / MARK).stat()
    mark(tmp_path)
    assert (tmp_path / MARK).stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o077 == 0


def test_logs_of_three_runs_are_kept(tmp_path: Path) -> None:
    """Each moves one on; the fourth goes."""
    for run in range(5):
        put_away_logs(tmp_path)
        filled(tmp_path, f"{LOGS}/")
        (tmp_path / LOGS / "agent.log").write_text(str(run))
    told = [(tmp_path / name / "agent.log").read_text() for name in (LOGS, *OLD_LOGS)]
    assert told == ["4", "3", "2", "1"]


def test_logs_that_say_nothing_are_not_kept(tmp_path: Path) -> None:
    """They would push out one that does."""
    filled(tmp_path, f"{LOGS}/")
    (tmp_path / LOGS / "agent.log").write_text("")
    put_away_logs(tmp_path)
    assert names(tmp_path) == {LOGS}


def test_what_a_run_made_is_removed(tmp_path: Path) -> None:
    """But for what is to be kept, old logs, what agents learned, and what others put there; no link is followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    filled(outside, "precious")
    run = tmp_path / "run"
    run.mkdir()
    filled(run, "ready", "kubeconfig", "node/", "node/deep", "prediction.json", OLD_LOGS[0] + "/", "letter.txt", LOCK)
    (run / "keys").symlink_to(outside)
    forget(run, keep={"kubeconfig"})
    assert names(run) == {"kubeconfig", "prediction.json", OLD_LOGS[0], "letter.txt", LOCK}
    assert names(outside) == {"precious"}

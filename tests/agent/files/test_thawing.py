"""Frozen cgroups are thawed, as many as are looked into; others are left as they are."""

from __future__ import annotations

from pathlib import Path

from agent.files.thawing import thaw, thawed


def frozen(folder: Path, state: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "freezer.state").write_text(f"{state}\n")
    return folder / "freezer.state"


def test_all_below(tmp_path: Path) -> None:
    """At whatever depth, and one that is about to freeze."""
    states = [
        frozen(tmp_path / path, state) for path, state in {"": "THAWED", "a": "FREEZING", "a/b": "FROZEN"}.items()
    ]
    assert thaw(str(tmp_path), 10) == 2
    assert [state.read_text().strip() for state in states] == ["THAWED"] * 3
    assert thaw(str(tmp_path), 10) == 0


def test_no_more_than_are_looked_into(tmp_path: Path) -> None:
    """Nor what is no cgroup, or gone."""
    for path in ("", "a", "b"):
        frozen(tmp_path / path, "FROZEN")
    assert thaw(str(tmp_path), 2) == 2
    assert not thawed(str(tmp_path / "gone")) and thaw(str(tmp_path / "gone"), 5) == 0

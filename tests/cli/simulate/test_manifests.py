"""Objects from files: what is too much is refused before it is all in memory."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.simulate.manifests import read
from model.fault import ConfigurationFault

LIMIT = 256 << 20


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    """A file one byte too large that takes no room on the disk."""
    file = tmp_path / "large.yaml"
    with file.open("wb") as stream:
        stream.truncate(LIMIT + 1)
    return file


def test_a_file_too_large_is_refused(sparse: Path) -> None:
    """By its name, with what to do."""
    with pytest.raises(ConfigurationFault) as told:
        read([sparse])
    assert str(told.value) == f"{sparse}: is larger than 256 MiB (give fewer nodes at a time)"


def test_so_is_standard_input(sparse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless pipe ends there."""
    with sparse.open() as stream, pytest.raises(ConfigurationFault, match=r"^standard input: is larger than 256 MiB"):
        monkeypatch.setattr(sys, "stdin", stream)
        read([Path("-")])

"""Every scenario by name, committed or made when wanted, and playing one: frame after frame laid over a folder."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import msgspec

from agent.core.observe.recording import Scenario
from cgroup_fixtures.make import RECIPES, make

FOLDER = Path(__file__).parent


def names() -> tuple[str, ...]:
    """All of them, in order."""
    committed = {path.parent.name for path in FOLDER.glob("*/scenario.toml")}
    return tuple(sorted(committed | set(RECIPES)))


def open_scenario(name: str, scratch: Path) -> Playback:
    """The scenario; one that is not committed is written below `scratch` first."""
    return Playback(make(name, scratch) if name in RECIPES else FOLDER / name)


def pread(descriptor: int, size: int, offset: int) -> bytes:
    """os.pread of a control file: ENODEV once it was removed, where a plain file could still be read."""
    if os.fstat(descriptor).st_nlink == 0:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
    return os.pread(descriptor, size, offset)


class Playback:
    """One scenario. `lay` makes `root` look like the node at that frame, given the frame before is there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.scenario = msgspec.toml.decode((folder / "scenario.toml").read_bytes(), type=Scenario)

    @property
    def frames(self) -> tuple[str, ...]:
        """The frames' folders."""
        return tuple(f"{number:02d}" for number in range(len(self.scenario.frames_seconds)))

    def lay(self, number: int, root: Path) -> float:
        """Copy what the frame changes, delete what it removes; returns the frame's time in seconds."""
        frame = self.frames[number]
        for name in self.scenario.removed.get(frame, ()):
            gone = root / name
            shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        shutil.copytree(self.folder / frame, root, dirs_exist_ok=True, copy_function=shutil.copyfile)
        return self.scenario.frames_seconds[number]

"""Copies the files the agent reads from a live node, frame by frame, into a folder that tests and replays play back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from agent.core.observe import recording
from agent.core.observe.files import cpu_pressure_file
from agent.core.observe.layout import SERVICES, driver_of
from agent.core.observe.recording import CgroupShape, Frame, Scenario
from model.fault import ConfigurationFault, KernelFault


class RecordedFolders(msgspec.Struct, frozen=True):
    """Where a node's files are; `kubepods` is below each controller's mount, e.g. `/kubepods`."""

    cgroups: Path = Path("/sys/fs/cgroup")
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    kubepods: str = "/kubepods"


class RecordPace(msgspec.Struct, frozen=True):
    """How many frames, how far apart, and the two functions that keep time (both in monotonic seconds)."""

    frames: int
    interval_seconds: float
    clock: Callable[[], float]
    sleep: Callable[[float], None]


class NodeFiles:
    """A node's files as bytes. Raises KernelFault where there are no pods' cgroups."""

    def __init__(self, places: RecordedFolders) -> None:
        self._places = places
        self.version = 2 if (places.cgroups / "cgroup.controllers").exists() else 1
        mounts = recording.cgroup_files(self.version)
        self._mounts = {name: files for name, files in mounts.items() if self._kubepods(name).is_dir()}
        if not self._mounts:
            raise KernelFault(
                str(self._kubepods("" if self.version == 2 else "cpu")),
                "does not exist",
                "is kubelet running here? give --kubepods its path, with the systemd driver /kubepods.slice",
            )

    @property
    def kernel(self) -> str:
        """The kernel's release; "" where it cannot be read."""
        return (_read(self._places.proc / "sys/kernel/osrelease") or b"").decode(errors="replace").strip()

    def once(self) -> dict[str, bytes]:
        """What does not change while a node runs."""
        files = {"sys/fs/cgroup/cgroup.controllers": self._places.cgroups / "cgroup.controllers"}
        for prefix, root, patterns in (
            ("proc", self._places.proc, recording.PROC_ONCE),
            ("sys", self._places.sys, recording.SYS_ONCE),
        ):
            found = (path for pattern in patterns for path in sorted(root.glob(pattern)))
            files.update({f"{prefix}/{path.relative_to(root)}": path for path in found})
        return _contents(files)

    def now(self) -> dict[str, bytes]:
        """One pass. A file that is not there, or that the kernel refuses to show, is absent."""
        files = {f"proc/{name}": self._places.proc / name for name in recording.PROC_FILES}
        files |= {f"sys/{name}": self._places.sys / name for name in recording.SYS_FILES}
        services = cpu_pressure_file(self.version, SERVICES)
        files[f"{recording.CGROUPS}/{services}"] = self._places.cgroups / services
        for mount, names in self._mounts.items():
            for folder in _folders(self._kubepods(mount), recording.CGROUP_DEPTH):
                below = folder.relative_to(self._places.cgroups)
                files.update({f"{recording.CGROUPS}/{below}/{name}": folder / name for name in names})
        return _contents(files)

    def _kubepods(self, mount: str) -> Path:
        return self._places.cgroups / mount / self._places.kubepods.strip("/")


def started(node: NodeFiles, kubepods: str, name: str, about: str) -> Scenario:
    """The scenario of a live node before its first frame, without pods. Raises KernelFault for an impossible /proc."""
    seen = node.now()
    try:
        shape = recording.shape_of(name, seen.get("proc/stat", b""), seen.get("proc/meminfo", b""))
    except ValueError as error:
        raise KernelFault("proc", str(error), "give --proc the node's own") from error
    layout = CgroupShape(node.version, driver_of(kubepods), kubepods, recording.runtime_of(seen))
    return Scenario(recording.Origin.RECORDED, about, (), shape, layout, node.kernel)


def record(node: NodeFiles, scenario: Scenario, pace: RecordPace, directory: Path) -> Scenario:
    """Write `pace.frames` frames below `directory`, with scenario.toml after each, so that an interrupted one is whole.

    Returns the scenario with the measured times. Raises ConfigurationFault where the directory cannot be written.
    """
    once, before = node.once(), dict[str, bytes]()
    began = pace.clock()
    for number in range(pace.frames):
        # The first frame is at 0 by definition; a pass that takes longer than the interval delays only itself.
        pace.sleep(max(began + number * pace.interval_seconds - pace.clock(), 0.0) if number else 0.0)
        at = pace.clock() - began if number else 0.0
        after = once | node.now()
        frame = recording.difference(before, after)
        scenario = _extended(scenario, f"{number:02d}", at, frame)
        _write(directory, f"{number:02d}", frame, scenario)
        before = after
    return scenario


def _extended(scenario: Scenario, name: str, at: float, frame: Frame) -> Scenario:
    removed = dict(scenario.removed) | ({name: frame.removed} if frame.removed else {})
    times = (*scenario.frames_seconds, round(at, 6))
    return msgspec.structs.replace(scenario, frames_seconds=times, removed=removed)


def _write(directory: Path, name: str, frame: Frame, scenario: Scenario) -> None:
    try:
        (directory / name).mkdir(parents=True)
        for path, text in frame.files.items():
            target = directory / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)
        (directory / "scenario.toml").write_text(recording.scenario_text(scenario))
    except OSError as error:
        raise ConfigurationFault(str(error.filename or directory), error.strerror or str(error)) from error


def _folders(top: Path, depth: int) -> Iterator[Path]:
    """`top` and the directories below it; one that vanishes meanwhile has none."""
    yield top
    if depth == 0:
        return
    try:
        with os.scandir(top) as entries:
            below = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in below:
        yield from _folders(top / name, depth - 1)


def _contents(files: dict[str, Path]) -> dict[str, bytes]:
    read = ((name, _read(path)) for name, path in files.items())
    return {name: text for name, text in read if text is not None}


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

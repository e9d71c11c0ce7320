"""What the kernel says of the nodes' best-effort work, and of the containers of a pod."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

CONTROLLERS = ("cpu", "cpuset", "memory", "blkio")
_NO_SETTINGS = {"cgroup.procs", "tasks", "cgroup.event_control", "notify_on_release", "cgroup.clone_children"}


def control_files(endpoints: dict[str, Any]) -> dict[str, str]:
    """Path → content of each setting of the best-effort root of every node."""
    found = {}
    for node in endpoints["nodes"]:
        for controller in CONTROLLERS:
            folder = Path(node["cgroup_root"]) / controller / node["kubepods"].lstrip("/") / "besteffort"
            for file in folder.iterdir():
                if file.is_file() and file.stat().st_mode & 0o200 and file.name not in _NO_SETTINGS:
                    found[str(file)] = _read(file)
    return found


def _read(file: Path) -> str:
    """Counters change by themselves, and some files are written alone."""
    if file.name.endswith(("usage_in_bytes", "failcnt", "usage", "reset_stats", "force_empty", "pressure_level")):
        return ""
    try:
        return file.read_text()
    except OSError:
        return ""


class Process(NamedTuple):
    """One process as the kernel describes it; capabilities are bits of linux/capability.h."""

    pid: int
    command: str
    uid: int
    capabilities: int
    gains_nothing: bool
    read_only: bool

    @property
    def root(self) -> Path:
        """Its root file system, seen from here."""
        return Path(f"/proc/{self.pid}/root")


def processes_of(pod_uid: str) -> list[Process]:
    """The first process of each container of a pod, found by its cgroup."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if f"pod{pod_uid}/" in (entry / "cgroup").read_text():
                    found.append(_process(entry))
            except OSError:
                continue  # it ended meanwhile
    parents = {process.pid for process in found}
    return sorted(process for process in found if _parent(process.pid) not in parents)


def _process(entry: Path) -> Process:
    status = dict(line.split(":\t", 1) for line in (entry / "status").read_text().splitlines() if ":\t" in line)
    mounts = [line.split() for line in (entry / "mountinfo").read_text().splitlines()]
    options = next(mount[5] for mount in mounts if mount[4] == "/")
    return Process(
        int(entry.name),
        (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(),
        int(status["Uid"].split()[0]),
        int(status["CapEff"], 16),
        status["NoNewPrivs"] == "1",
        "ro" in options.split(","),
    )


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def bounding_set() -> int:
    """What a process of this machine can have at all."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("CapBnd:\t")[2].split()[0], 16)

"""Preflight facts of this node: files that are read, never written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from agent.core.observe.knobs import MEMORY_HIGH_FILE, MEMORY_LOW_FILE, MEMORY_MIN_FILE, UNLIMITED, RootKnobs, value_of
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Knob
from agent.core.observe.preflight import RIVALS, PreflightFacts
from agent.files.statefile import originals_in
from model.fault import KernelFault

_V1_CONTROLLERS = ("blkio", "cpu", "cpuset", "memory", "pids")
_COMM_CHARACTERS = 15
_MOST_PODS = 20
"""Of each class: a kubelet does with all pods what it does with one."""
_KEPT = {MEMORY_MIN_FILE: 0, MEMORY_LOW_FILE: 0, MEMORY_HIGH_FILE: UNLIMITED}
"""What each file says where nobody wrote it."""
_NAME_AND_USER = re.compile(rb"Name:\t(.*)\n(?:.*\n)*?Uid:\t([0-9]+)")
_ROOT = b"0"


class PreflightPaths(msgspec.Struct, frozen=True):
    """Where to look; as the agent's own options. Without a layout the fault says why there is none."""

    cgroup_root: Path
    proc: Path
    state_file: Path
    layout: Layout | KernelFault


def look(places: PreflightPaths) -> PreflightFacts:
    """Never raises for what is missing: that is what the facts say."""
    trouble = _state_trouble(places.state_file.parent)
    facts = PreflightFacts(
        kernel=os.uname().release,
        pressure=(places.proc / "pressure" / "cpu").exists(),
        capabilities=_capabilities(),
        rivals=tuple(sorted(set(_rivals(places.proc, places.layout)))),
        state=str(places.state_file.parent),
        state_trouble=trouble,
    )
    if isinstance(places.layout, KernelFault):
        return msgspec.structs.replace(facts, trouble=f"{places.layout.where} {places.layout.what}")
    kept = _memory_kept(places) if places.layout.version == 2 else ""
    return msgspec.structs.replace(facts, memory_kept=kept, **_of_cgroups(places.cgroup_root, places.layout))


def _of_cgroups(root: Path, layout: Layout) -> dict[str, object]:
    knobs = RootKnobs.of(layout)
    best_effort = {knob.file: root / knob.controller / knob.cgroup.lstrip("/") / knob.file for knob in knobs.all}
    there = {name: path for name, path in best_effort.items() if path.exists()}
    kill = root / layout.best_effort.lstrip("/") / "cgroup.kill"
    return {
        "cgroup_version": layout.version,
        "kubepods": layout.root,
        "driver": layout.driver.value,
        "controllers": _controllers(root, layout),
        "knobs": frozenset(there),
        "unwritable": tuple(name for name, path in there.items() if not os.access(path, os.W_OK)),
        "kill_file": kill.exists(),
    }


def _memory_kept(places: PreflightPaths) -> str:
    """The first file of kubepods, of a class, a pod or a container that protects memory or slows down, and that no
    agent of ours wrote; empty where there is none."""
    if isinstance(places.layout, KernelFault):
        return ""
    ours = originals_in(places.state_file)
    for cgroup in _cgroups_of_pods(places.cgroup_root, places.layout):
        for file, neutral in _KEPT.items():
            knob = Knob(cgroup, "", file)
            if knob not in ours and _says(places.cgroup_root, knob) not in (None, neutral):
                return f"{file} of {cgroup}"
    return ""


def _cgroups_of_pods(root: Path, layout: Layout) -> Iterator[str]:
    """Kubepods, the classes, and some of their pods with containers."""
    classes = (layout.root, layout.burstable, layout.best_effort)
    yield from classes
    for cgroup in classes:
        pods = [f"{cgroup}/{name}" for name in _folders(root, cgroup) if layout.pod_uid_of(name)]
        for pod in pods[:_MOST_PODS]:
            yield pod
            yield from (f"{pod}/{name}" for name in _folders(root, pod))


def _folders(root: Path, cgroup: str) -> list[str]:
    try:
        with os.scandir(root / cgroup.lstrip("/")) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _says(root: Path, knob: Knob) -> int | str | None:
    """None where it is not there, or says nothing that is understood."""
    try:
        return value_of(knob, (root / knob.cgroup.lstrip("/") / knob.file).read_bytes())
    except (OSError, ValueError):
        return None


def _controllers(root: Path, layout: Layout) -> frozenset[str]:
    """Of v2 those that kubepods has; of v1 those with a kubepods of their own."""
    below = layout.root.lstrip("/")
    if layout.version == 1:
        return frozenset(name for name in _V1_CONTROLLERS if (root / name / below).is_dir())
    try:
        return frozenset((root / below / "cgroup.controllers").read_text().split())
    except OSError:
        return frozenset()


def _capabilities() -> int | None:
    """This process's own, as the agent's container has them."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    except (OSError, StopIteration, ValueError, IndexError):
        return None


def _rivals(proc: Path, layout: Layout | KernelFault) -> Iterator[str]:
    """Whoever runs on the node names a process and a cgroup as he likes, in bytes that are no text, too: what is not
    root's, or is best-effort work, is none, and of the others too the name proves nothing."""
    limited = b"" if isinstance(layout, KernelFault) else Path(layout.best_effort).name.encode()
    short = {name[:_COMM_CHARACTERS].encode(): name for name in RIVALS}
    for process in proc.iterdir() if proc.is_dir() else ():
        if process.name.isdecimal():
            name, user = _name_and_user(process)
            if name in short and user == _ROOT and not (limited and limited in _cgroup_names(process)):
                yield short[name]


def _name_and_user(process: Path) -> tuple[bytes, bytes]:
    """Its name and its real user as the host counts users, see proc_pid_status(5); empty where it ended."""
    try:
        found = _NAME_AND_USER.match((process / "status").read_bytes())
    except OSError:
        return b"", b""
    return (found[1].strip(), found[2]) if found else (b"", b"")


def _cgroup_names(process: Path) -> list[bytes]:
    """The folders of its cgroups, of all hierarchies; none where they cannot be read."""
    try:
        return (process / "cgroup").read_bytes().replace(b"\n", b"/").split(b"/")
    except OSError:
        return []


def _state_trouble(folder: Path) -> str:
    """Empty where the folder, or the nearest one above that exists, can be written."""
    nearest = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    return "" if os.access(nearest, os.W_OK | os.X_OK) else f"{nearest} cannot be written"

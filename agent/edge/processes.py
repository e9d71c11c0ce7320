"""The process that represents a pod: any one of its containers' (cgroup.procs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.core.observe.layout import PodDirectory
from model.pod.pod import Pod


def processes(tree: Path, pods: Iterable[Pod], directories: Mapping[str, PodDirectory]) -> dict[str, int]:
    """uid → process id of each pod with a network of its own; `tree` is what the directories are below."""
    found = {}
    for pod in pods:
        directory = directories.get(pod.cgroup_uid or pod.uid)
        if pod.spec.host_network or pod.terminal or directory is None:
            continue
        for path in directory.containers.values():
            if (process := _first(tree / path.lstrip("/"))) is not None:
                found[pod.uid] = process
                break
    return found


def _first(cgroup: Path) -> int | None:
    """0 is a process this namespace cannot see."""
    try:
        first = (cgroup / "cgroup.procs").read_bytes().split(maxsplit=1)
        return int(first[0]) or None if first else None
    except (OSError, ValueError):
        return None

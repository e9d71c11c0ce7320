"""What the node itself mounts: memory for emptyDir volumes; and whether containers can have mounts at all."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import structlog

from local.node import mountspace
from local.node.podobject import PodObject
from local.node.volumes import Places, memory_limits
from model.quantity import QuantityError, parse_units

log = structlog.get_logger()


@functools.cache
def namespaces_possible() -> bool:
    """Tried once, in a process of its own."""
    program = [sys.executable, "-I", "-S", str(Path(mountspace.__file__))]
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        log.info("containers cannot have mounts of their own on this machine", why=why)
    return done.returncode == 0


def set_up(pod: PodObject, places: Places) -> None:
    """A tmpfs for each volume of the medium Memory. Without root it is a directory like any other. Raises OSError."""
    for name, limit in memory_limits(pod).items():
        directory = places.of(name)
        directory.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0 and not directory.is_mount():
            options = "mode=777" + (f",size={_bytes(limit)}" if limit else "")
            mountspace.mount("tmpfs", str(directory), "tmpfs", 0, options)


def _bytes(limit: str) -> int:
    try:
        return parse_units(limit)
    except QuantityError:
        return 0  # no limit: the API server lets no such quantity pass


def remove(directory: Path) -> None:
    """A directory of volumes, unmounted first: also after a node that died with its mounts in place."""
    for mounted in _mounts_below(directory):
        with suppress(OSError):
            mountspace.unmount(mounted)
    shutil.rmtree(directory, ignore_errors=True)


def _mounts_below(directory: Path) -> list[str]:
    if os.geteuid() != 0:
        return []
    below = f"{directory.resolve()}/"
    fields = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    places = [each[4].encode().decode("unicode_escape") for each in fields]
    return sorted((each for each in places if each.startswith(below)), key=len, reverse=True)

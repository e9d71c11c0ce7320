"""What the node itself mounts: memory for emptyDir volumes; and whether containers can have mounts at all."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from embedded.node.objects.pod import PodObject
from embedded.node.processes import mount_namespace
from embedded.node.volumes.volumes import Places, memory_limits, secret
from embedded.quantity import QuantityError, parse_units

log = structlog.get_logger()

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")


@functools.cache
def namespaces_possible() -> bool:
    """Tried once, in a process of its own."""
    program = [sys.executable, "-I", "-S", str(Path(mount_namespace.__file__))]
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        log.info("containers cannot have mounts of their own on this machine", why=why)
    return done.returncode == 0


@functools.cache
def images_possible() -> bool:
    """Whether a container can have an image's files as its root: tried once, in a process of its own. Needs root."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as stage:
        script = (
            "import sys; sys.path.append(sys.argv[1]); import root_filesystem; root_filesystem.try_out(sys.argv[2])"
        )
        program = [sys.executable, "-I", "-S", "-c", script, str(Path(mount_namespace.__file__).parent), stage]
        done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        log.info("containers cannot run on images on this machine", why=why)
    return done.returncode == 0


def set_up(pod: PodObject, places: Places) -> None:
    """Place for the pod's volumes, as far as they are in memory.

    A tmpfs for each volume of the medium Memory and each with secrets; without root it is a directory like any other.
    Raises OSError.
    """
    for name, limit in memory_limits(pod).items():
        _in_memory(places.emptied(name), "mode=777" + (f",size={_bytes(limit)}" if limit else ""))
    for name in secret(pod):
        _in_memory(places.of(name), "mode=755")


def _in_memory(directory: Path, options: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0 and not directory.is_mount():
        mount_namespace.mount("tmpfs", str(directory), "tmpfs", 0, options)


def _bytes(limit: str) -> int:
    try:
        return parse_units(limit)
    except QuantityError:
        return 0  # no limit: the API server lets no such quantity pass


def remove(directory: Path, unmount: Callable[[str], None] = mount_namespace.unmount) -> None:
    """A directory a pod could write to, unmounted first: also after a node that died with its mounts in place.

    Where something stays mounted the directory stays too: what is seen there is not the pod's.
    """
    for mounted in _mounts_in(directory):
        with suppress(OSError):
            unmount(mounted)
    left = _mounts_in(directory)
    if left:
        log.error("not removed: something is mounted in it that cannot be unmounted", path=str(directory), mounts=left)
        return
    shutil.rmtree(directory, ignore_errors=True)


def _mounts_in(directory: Path) -> list[str]:
    """Mount points there and below, the deepest first. A link in the directory's place leads nowhere."""
    top = str(directory.parent.resolve() / directory.name)
    places = mount_points(Path("/proc/self/mountinfo").read_bytes())
    return sorted((each for each in places if each == top or each.startswith(f"{top}/")), key=len, reverse=True)


def mount_points(mountinfo: bytes) -> list[str]:
    """See proc_pid_mountinfo(5): blanks and backslashes in a path are octal, all other bytes are as they are."""
    fields = (line.split(b" ") for line in mountinfo.split(b"\n") if line)
    return [os.fsdecode(_OCTAL.sub(lambda found: bytes([int(found[1], 8)]), each[4])) for each in fields]

"""What this machine is: read once at the start."""

from __future__ import annotations

import platform
import shutil
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Machine(msgspec.Struct, frozen=True):
    """True capacity and identity; `architecture` in Go's words."""

    cpu_count: int
    memory_bytes: int
    storage_bytes: int
    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    boot_id: str
    sublet_version: str


def read_machine(storage: Path) -> Machine:
    """`storage` is a directory on the file system whose size counts as ephemeral storage."""
    return Machine(
        cpu_count=psutil.cpu_count() or 1,
        memory_bytes=psutil.virtual_memory().total,
        storage_bytes=shutil.disk_usage(storage).total,
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        os_image=_os_image(),
        machine_id=_line("/etc/machine-id"),
        boot_id=_line("/proc/sys/kernel/random/boot_id"),
        sublet_version=_version(),
    )


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


def _line(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def _version() -> str:
    try:
        return metadata.version("sublet")
    except metadata.PackageNotFoundError:
        return "0.0.0"

"""What this machine is: read once at the start."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from embedded.node.machine.share import Claim, Share, share_of
from embedded.node.network.addresses import node_address
from embedded.node.objects.pod import HOST_ADDRESS

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Machine(msgspec.Struct, frozen=True):
    """Identity and capacity, which is what the Node says it has; `architecture` in Go's words.

    `true_…` is what is really there where the Node says more, else 0. `address` is the node's own.
    """

    cpu_millis: int
    memory_bytes: int
    storage_bytes: int
    architecture: str
    kernel: str
    os_image: str
    machine_id: str
    boot_id: str
    software_version: str
    true_cpu_millis: int = 0
    true_memory_bytes: int = 0
    address: str = HOST_ADDRESS


def cpus_of_machine() -> tuple[int, ...]:
    """Ids of the CPUs that this process may use, ascending."""
    return tuple(sorted(os.sched_getaffinity(0)))


def share_of_machine(number: int, of: int, claim: Claim) -> Share:
    """This machine's CPUs and memory, divided."""
    return share_of(number, of, cpus_of_machine(), psutil.virtual_memory().total, claim)


def read_machine(storage: Path, share: Share, *, routed: bool = False) -> Machine:
    """`storage` is a directory on the file system whose size, divided, counts as ephemeral storage."""
    return Machine(
        cpu_millis=share.claimed_cpu_millis,
        memory_bytes=share.claimed_memory_bytes,
        storage_bytes=shutil.disk_usage(storage).total // share.of,
        architecture=_ARCHITECTURES.get(platform.machine(), platform.machine()),
        kernel=platform.release(),
        os_image=_os_image(),
        machine_id=_line("/etc/machine-id"),
        boot_id=_line("/proc/sys/kernel/random/boot_id"),
        software_version=_version(),
        true_cpu_millis=share.bound_cpu_millis if share.overstated else 0,
        true_memory_bytes=share.bound_memory_bytes if share.overstated else 0,
        address=node_address(share.number, routed=routed),
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
        return metadata.version("sublet-embedded")
    except metadata.PackageNotFoundError:
        return "0.0.0"

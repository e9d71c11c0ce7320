"""What the process node is told on its command line."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

import msgspec

from agent.core.observe.layout import CgroupDriver
from local.node.pressure import Limits
from local.node.share import Claim
from model.fault import ConfigurationFault

_ID = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?\Z")
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?\Z")


class Kernel(StrEnum):
    """Who accounts for and limits the processes of pods: this machine's kernel, or one imitated from user space."""

    REAL = "real"
    SIMULATED = "simulated"


class NodeSettings(msgspec.Struct, frozen=True):
    """`id` keeps nodes of one machine apart: all cgroups live under `/sublet-<id>` and nothing outside is touched.

    `share` is (number, of): which part of this machine the node is. `images` is the image store, see imagestore,
    `static_programs` the file that tells of programs to show as static pods, see mirrors.
    `client_ca` is who signs the API server's client certificate, where that is not the embedded one.
    """

    kubeconfig: Path
    node_name: str
    id: str
    run_dir: Path
    tls_cert: Path
    tls_key: Path
    kubelet_token_file: Path
    ready_file: Path | None = None
    backoff_base_seconds: float = 10.0
    eviction: Limits = Limits()
    cgroup_root: Path = Path("/sys/fs/cgroup")
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    kernel: Kernel = Kernel.REAL
    share: tuple[int, int] = (1, 1)
    claim: Claim = Claim()
    images: Path | None = None
    client_ca: Path | None = None
    static_programs: Path | None = None

    def __post_init__(self) -> None:
        if not _ID.match(self.id):
            raise ConfigurationFault("--id", f"{self.id!r} cannot name a cgroup", "use a-z, 0-9 and -, at most 40")
        if not _NODE_NAME.match(self.node_name):
            raise ConfigurationFault("--node-name", f"{self.node_name!r} is not a node name", "use a-z, 0-9, - and .")
        if self.images is not None and not self.images.is_dir():
            raise ConfigurationFault(f"--images {self.images}", "no such directory", "make the images first")
        if self.backoff_base_seconds <= 0:
            raise ConfigurationFault("--backoff-base", "must be above 0 seconds", "leave it out for the kubelet's 10")

"""Choices about an embedded cluster, and what follows from them."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

import msgspec

from agent.core.observe.layout import CgroupDriver
from embedded.cgroups.hierarchy import Cgroups, UnsuitableKernel, discover
from embedded.node.machine.share import Claim
from embedded.node.settings import Kernel
from local.certificates import LOOPBACK_NAMES
from local.runfiles import MOST_NODES
from local.simnodes.settings import Simulation, parse_pools, with_resources
from model.fault import ConfigurationFault, KernelFault

ANY_PORT = "127.0.0.1:0"
CGROUP_ROOT = Path("/sys/fs/cgroup")


def default_node_name() -> str:
    """This machine's host name as Kubernetes allows it."""
    return socket.gethostname().split(".")[0].lower().replace("_", "-") or "localhost"


class NodeSlot(msgspec.Struct, frozen=True):
    """One of the process nodes; `suffix` tells its programs and files from the others'."""

    number: int
    name: str
    id: str
    suffix: str


class Choices(msgspec.Struct, frozen=True):
    """`id` names the cgroups, and no other cluster has it; `agent_settings` and `agent_journal` are files of the agent,
    `scheduler_settings` is one of the scheduler, whose word comes before that of `sublet up` itself.

    `node_name` is the node's, or where there are several the first part of each. A `state_dir` lets the API server's
    objects outlive it. `simulated_resources` and `simulated_labels` are those of each simulated node, as
    `NAME=QUANTITY` and `KEY=VALUE,…`. A `bare` cluster has nothing of Sublet. `images` are root file systems that pods
    may run in. `join` is the kubeconfig of an API server that is there already, `apiserver` where the programs of a
    real one are.
    """

    node_name: str = msgspec.field(default_factory=default_node_name)
    id: str = msgspec.field(default_factory=lambda: secrets.token_hex(3))
    agent_settings: Path | None = None
    agent_journal: Path | None = None
    scheduler_settings: Path | None = None
    process_nodes: int = 1
    claim: Claim = Claim()
    kernel: Kernel = Kernel.REAL
    cgroup_driver: CgroupDriver = CgroupDriver.CGROUPFS
    listen: str = ANY_PORT
    state_dir: Path | None = None
    simulated_nodes: int = 0
    simulated_resources: tuple[str, ...] = ()
    simulated_labels: tuple[str, ...] = ()
    trace: Path | None = None
    bare: bool = False
    images: Path | None = None
    audit_log: Path | None = None
    join: Path | None = None
    apiserver: Path | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.process_nodes <= MOST_NODES:
            raise ConfigurationFault(f"--process-nodes {self.process_nodes}", "is not possible", f"0 to {MOST_NODES}")
        if self.trace is not None and not self.simulated_nodes:
            raise ConfigurationFault("--trace", "is what simulated nodes play", "give --simulated-nodes too")
        for flag, given in (("--resource", self.simulated_resources), ("--label", self.simulated_labels)):
            if given and not self.simulated_nodes:
                raise ConfigurationFault(flag, "is of simulated nodes", "give --simulated-nodes too")
        if self.simulated_nodes:
            with_resources(Simulation(1, pools=parse_pools(self.simulated_labels)), self.simulated_resources)
        if self.bare and (self.agent_settings or self.agent_journal):
            raise ConfigurationFault("--bare", "has no agent to give settings to", "leave out --agent-…")
        if self.bare and self.scheduler_settings:
            fix = "leave out --scheduler-settings"
            raise ConfigurationFault("--bare", "has nothing of Sublet to give settings to", fix)
        if self.join is not None and (self.state_dir or self.audit_log or self.listen != ANY_PORT):
            fix = "leave out --listen, --state-dir and --audit-log"
            raise ConfigurationFault("--join", "uses an API server that is there already", fix)
        if self.apiserver is not None and (self.join or self.state_dir or self.audit_log):
            fix = "leave out --join, --state-dir and --audit-log"
            raise ConfigurationFault("--apiserver", "starts an API server whose state ends with it", fix)
        host, port = host_and_port(self.listen)
        if not host or not port.isdecimal() or int(port) > 65535:
            raise ConfigurationFault(f"--listen {self.listen}", "is not HOST:PORT", "such as 127.0.0.1:6443")

    @property
    def routed(self) -> bool:
        """Whether the API server is a real one, which takes no loopback address for an endpoint."""
        return self.join is not None or self.apiserver is not None

    @property
    def slots(self) -> tuple[NodeSlot, ...]:
        if self.process_nodes == 1:
            return (NodeSlot(1, self.node_name, self.id, ""),)
        numbers = range(1, self.process_nodes + 1)
        return tuple(NodeSlot(n, f"{self.node_name}-{n}", f"{self.id}-{n}", f"-{n}") for n in numbers)

    @property
    def server_names(self) -> tuple[str, ...]:
        """By what the API server may be called: loopback, the nodes, and what it listens on."""
        host = host_and_port(self.listen)[0].strip("[]")
        own = (socket.gethostname(), *_addresses()) if host in ("0.0.0.0", "::") else (host,)
        return tuple(dict.fromkeys((*LOOPBACK_NAMES, *(slot.name for slot in self.slots), *own)))


def host_and_port(address: str) -> tuple[str, str]:
    host, _, port = address.rpartition(":")
    return host, port


def ids_of(id_: str) -> tuple[str, ...]:
    """Every id that a node of a cluster may have, however many it had."""
    return (id_, *(f"{id_}-{number}" for number in range(1, MOST_NODES + 1)))


def usable_kernel(wanted: Kernel | None, command: str, root: Path = CGROUP_ROOT) -> tuple[Kernel, str]:
    """The kernel to work with, and why it is a simulated one that nobody asked for; None picks the best there is.

    Raises KernelFault where the real one is wanted and cannot be used.
    """
    if wanted is Kernel.SIMULATED:
        return wanted, ""
    try:
        _try_real(root)
    except UnsuitableKernel as fault:
        if wanted is Kernel.REAL:
            fix = f"{fault.where}: {fault.what}; {fault.fix}".rstrip("; ")
            raise KernelFault(command, "needs root and writable cgroups", fix) from fault
        return Kernel.SIMULATED, f"{fault.where}: {fault.what}"
    return Kernel.REAL, ""


def _try_real(root: Path) -> None:
    """Make a cgroup and remove it: only that tells what a container lets its root do. Raises UnsuitableKernel."""
    cgroups = Cgroups(discover(root, f"probe-{os.getpid()}"))
    try:
        cgroups.create(cgroups.layout.kubepods)
    finally:
        for path in (cgroups.layout.kubepods, cgroups.layout.prefix):
            cgroups.remove_empty(path)


def _addresses() -> tuple[str, ...]:
    """This machine's own; an address that cannot be told is simply not in the certificate."""
    try:
        found = socket.getaddrinfo(socket.gethostname(), None)
    except OSError:
        return ()
    return tuple(sorted({str(entry[4][0]).partition("%")[0] for entry in found}))

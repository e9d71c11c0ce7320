"""Options of an agent: where it runs, as its command line says."""

from __future__ import annotations

from pathlib import Path

import msgspec

from agent.core.observe.layout import CgroupDriver

NOWHERE = "none"
"""`grpc_listen` where diagnostics are on the socket alone."""


class AgentOptions(msgspec.Struct, frozen=True):
    """Where this agent runs; what it does is in its settings. An empty `kubepods` is looked for.

    `tls_cert` and `tls_key` are needed for an `http_listen` off loopback.
    """

    node_name: str
    state_file: Path
    prediction_file: Path | None = None
    kubeconfig: Path | None = None
    kubepods: str = ""
    cgroup_driver: CgroupDriver | None = None
    cgroup_root: Path = Path("/sys/fs/cgroup")
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cpu_manager_state: Path = Path("/var/lib/kubelet/cpu_manager_state")
    kubelet_pods: Path = Path("/var/lib/kubelet/pods")
    socket: Path = Path("/run/sublet/agent.sock")
    heartbeat: Path = Path("/run/sublet/agent.heartbeat")
    grpc_listen: str = "127.0.0.1:10317"
    http_listen: str = "127.0.0.1:10316"
    tls_cert: Path | None = None
    tls_key: Path | None = None
    scheduler: str | None = None
    scheduler_ca: Path | None = None
    token_file: Path | None = None
    ready_file: Path | None = None
    settings: Path | None = None
    journal: Path | None = None
    journal_max_mib: int = 256

    @property
    def probe_socket(self) -> Path:
        """Where probes ask: beside the socket, in a folder that only the agent's user can write to."""
        return self.socket.with_suffix(".probe")

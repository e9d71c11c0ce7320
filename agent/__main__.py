"""Command line of the node agent: `python -m agent` or `sublet agent`."""

from __future__ import annotations

from kube.logs import LogFormat, configure

# isort: split
# Above all others, since whoever loads structlog first decides whether rich comes with it.

import argparse
import asyncio
import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from agent.core.observe.layout import CgroupDriver
from agent.version import VERSION
from model.fault import ConfigurationFault, Fault

if TYPE_CHECKING:
    from agent.options import AgentOptions
    from agent.run.offline import OfflineOptions

_SHORTEST_SILENCE_SECONDS = 5.0


def main(argv: Sequence[str]) -> int:
    """Exit code 0 after an ordered stop, 2 with one line on standard error for a fault somebody can mend."""
    arguments = _parser().parse_args(argv)
    arguments.heartbeat = arguments.heartbeat or arguments.socket.with_name("agent.heartbeat")
    configure(arguments.log_format)
    _share_memory()
    try:
        _run(arguments)
    except Fault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 2
    except PermissionError as error:
        print(f"error: {error.filename}: {error.strerror} (the agent needs root)", file=sys.stderr)
        return 2
    except Exception:
        structlog.get_logger().exception("the agent ended by an error of its own; limits stay in force")
        return 1
    return 0


def _share_memory() -> None:
    """One heap for all threads, where glibc would make one for each, up to eight a CPU: what one gives back the others
    may use. Elsewhere nothing is done. The number is malloc.h's M_ARENA_MAX.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-8, 1)


def _run(arguments: argparse.Namespace) -> None:
    # Imported here: what needs no cluster starts without all that talks to one.
    from agent.run import offline

    if arguments.restore:
        print(offline.restore_all(_offline(arguments), if_any=arguments.if_any))
        return
    if arguments.preflight:
        offline.require_node(_offline(arguments))
    if arguments.guard:
        offline.guard(_offline(arguments))
    else:
        from agent.run.loop import event_loop
        from agent.run.wiring import run

        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(run(_options(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sublet agent", description="Lends what online services leave idle.")
    add = parser.add_argument
    add("--version", action="version", version=f"sublet-agent {VERSION}")
    add("--node-name", default=os.environ.get("NODE_NAME"), help="name of this Node (default: $NODE_NAME)")
    add("--kubeconfig", type=Path, help="cluster access (default: the pod's service account)")
    add("--kubepods", default="", help="kubepods cgroup below each controller (default: looked for)")
    add(
        "--cgroup-driver",
        type=CgroupDriver,
        choices=list(CgroupDriver),
        help="who names the cgroups (default: told from the kubepods directory)",
    )
    add(
        "--cgroup-root",
        type=Path,
        default=Path("/sys/fs/cgroup"),
        help="where the controllers are mounted (default: %(default)s)",
    )
    add("--proc", type=Path, default=Path("/proc"), help="the host's procfs (default: %(default)s)")
    add("--sys", type=Path, default=Path("/sys"), help="the host's sysfs (default: %(default)s)")
    add(
        "--cpu-manager-state",
        type=Path,
        default=Path("/var/lib/kubelet/cpu_manager_state"),
        help="the kubelet's CPU manager state (default: %(default)s)",
    )
    add(
        "--state-file",
        type=Path,
        default=Path("/var/lib/sublet/agent.json"),
        help="originals of changed limits (default: %(default)s)",
    )
    add("--prediction-file", type=Path, help="learned peaks (default: prediction.json beside the state file)")
    add(
        "--socket",
        type=Path,
        default=Path("/run/sublet/agent.sock"),
        help="unix socket for diagnostics (default: %(default)s)",
    )
    add(
        "--kubelet-pods",
        type=Path,
        default=Path("/var/lib/kubelet/pods"),
        help="the kubelet's folder of pods, in which pods have their sockets (default: %(default)s)",
    )
    add("--grpc-listen", default="127.0.0.1:10317", help="diagnostics; loopback only, or none (default: %(default)s)")
    add(
        "--http-listen",
        default="127.0.0.1:10316",
        help="/metrics and probes; HTTPS off loopback (default: %(default)s)",
    )
    add("--tls-cert", type=Path, help="PEM certificate to serve off loopback with; read again when it changes")
    add("--tls-key", type=Path, help="its PEM key")
    add("--scheduler", help="HOST:PORT of the scheduler's link (default: none, eviction costs are neutral)")
    add("--scheduler-ca", type=Path, help="certificate authority of the scheduler")
    add("--token-file", type=Path, help="token that identifies this agent to the scheduler")
    add("--ready-file", type=Path, help="written with the addresses in use once ready")
    add("--settings", type=Path, help="settings file, YAML or JSON; docs/settings.md lists fields and defaults")
    add("--journal", type=Path, help="write each tick to this file, for sublet replay; an older one becomes FILE.1")
    add("--journal-max-mib", type=int, default=256, help="the journal starts again beyond this (default: %(default)s)")
    add("--log-format", type=LogFormat, choices=list(LogFormat), default=LogFormat.JSON, help="(default: %(default)s)")
    add(
        "--heartbeat",
        type=Path,
        help="touched by the agent each tick (default: agent.heartbeat beside the socket)",
    )
    add("--preflight", action="store_true", help="look first whether Sublet works here, and end where it would not")
    also = parser.add_mutually_exclusive_group()
    also.add_argument("--restore", action="store_true", help="put the original limits back and exit")
    also.add_argument(
        "--guard", action="store_true", help="be the agent's guard: hold best effort at a share while it is silent"
    )
    add("--if-any", action="store_true", help="with --restore: that nothing was ever changed is no error")
    add("--guard-share", type=int, default=20, metavar="PCT", help="of all CPUs (default: %(default)s)")
    add("--guard-silence", type=float, default=60.0, metavar="SECONDS", help="before it acts (default: %(default)s)")
    return parser


def _offline(arguments: argparse.Namespace) -> OfflineOptions:
    from agent.run.offline import OfflineOptions

    if not 1 <= arguments.guard_share <= 100:
        raise ConfigurationFault(f"--guard-share {arguments.guard_share}", "is no share", "give 1 to 100 percent")
    if not arguments.guard_silence >= _SHORTEST_SILENCE_SECONDS:
        fix = f"give {_SHORTEST_SILENCE_SECONDS:g} seconds or more; an agent that starts again is silent for some"
        raise ConfigurationFault(f"--guard-silence {arguments.guard_silence:g}", "is too short", fix)
    named = {"guard_share_pct": arguments.guard_share, "guard_silence_seconds": arguments.guard_silence}
    chosen = {name: getattr(arguments, name) for name in OfflineOptions.__struct_fields__ if name not in named}
    return OfflineOptions(**chosen, **named)


def _options(arguments: argparse.Namespace) -> AgentOptions:
    from agent.options import NOWHERE, AgentOptions
    from agent.settings import require_loopback

    if not arguments.node_name:
        _parser().error("--node-name is missing and NODE_NAME is not set")
    if arguments.scheduler and not (arguments.scheduler_ca and arguments.token_file):
        _parser().error("--scheduler needs --scheduler-ca and --token-file")
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        _parser().error("--tls-cert and --tls-key go together")
    # Served only after the first tick: a mistake must be told before anything is limited.
    if arguments.grpc_listen != NOWHERE:
        require_loopback("--grpc-listen", arguments.grpc_listen)
    if arguments.journal_max_mib < 1:
        raise ConfigurationFault(f"--journal-max-mib {arguments.journal_max_mib}", "is below 1", "give a size in MiB")
    return AgentOptions(**{name: getattr(arguments, name) for name in AgentOptions.__struct_fields__})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

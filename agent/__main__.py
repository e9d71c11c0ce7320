"""Command line of the node agent: `python -m agent` or `sublet agent`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from agent.core.layout import CgroupDriver
from agent.wiring import VERSION, AgentOptions, restore, run
from model.fault import ConfigurationFault, Fault


def main(argv: Sequence[str]) -> int:
    """Exit code 0 after an ordered stop, 2 with one line on standard error for a fault somebody can mend."""
    arguments = _parser().parse_args(argv)
    _log_as(arguments.log_format)
    try:
        options = _options(arguments)
        if arguments.restore:
            count = restore(options)
            print(f"{count} control file{'' if count == 1 else 's'} restored")
        else:
            asyncio.run(run(options))
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
        help="unix socket for diagnostics and checkpoints (default: %(default)s)",
    )
    add("--grpc-listen", default="127.0.0.1:10317", help="diagnostics; loopback only (default: %(default)s)")
    add("--http-listen", default="127.0.0.1:10316", help="/metrics, /healthz, /readyz (default: %(default)s)")
    add("--scheduler", help="HOST:PORT of the scheduler's link (default: none, eviction costs are neutral)")
    add("--scheduler-ca", type=Path, help="certificate authority of the scheduler")
    add("--token-file", type=Path, help="token that identifies this agent to the scheduler")
    add("--ready-file", type=Path, help="written with the addresses in use once ready")
    add("--settings", type=Path, help="settings file, YAML or JSON; docs/settings.md lists fields and defaults")
    add("--journal", type=Path, help="write each tick to this file, for sublet replay; an older one becomes FILE.1")
    add("--journal-max-mib", type=int, default=256, help="the journal starts anew beyond this (default: %(default)s)")
    add("--log-format", choices=("json", "console"), default="json", help="of standard error (default: %(default)s)")
    add("--restore", action="store_true", help="put the original limits back and exit")
    return parser


def _options(arguments: argparse.Namespace) -> AgentOptions:
    if not arguments.node_name and not arguments.restore:
        _parser().error("--node-name is missing and NODE_NAME is not set")
    if arguments.scheduler and not (arguments.scheduler_ca and arguments.token_file):
        _parser().error("--scheduler needs --scheduler-ca and --token-file")
    if arguments.journal_max_mib < 1:
        raise ConfigurationFault(f"--journal-max-mib {arguments.journal_max_mib}", "is below 1", "give a size in MiB")
    chosen = {name: getattr(arguments, name) for name in AgentOptions.__struct_fields__}
    return AgentOptions(**dict(chosen, node_name=arguments.node_name or ""))


def _log_as(form: str) -> None:
    console = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    renderer = console if form == "console" else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

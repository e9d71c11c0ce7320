"""`python -m local.node`: the process node as a program of its own.

Exit codes: 0 stopped by a signal · 1 could not start or go on · 2 wrong arguments · 3 no root or no writable cgroups.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from pathlib import Path

import structlog

from embedded.cgroups.drivers import CgroupDriver
from embedded.cgroups.hierarchy import UnsuitableKernel
from embedded.node.machine.share import Claim, parse_share
from embedded.node.pods.pressure import DEFAULT_THRESHOLDS, TRANSITION_SECONDS, Limits, parse_thresholds
from embedded.node.settings import Kernel, NodeSettings
from kube.logs import log_lines, logger_factory
from local.faults import FAULTS
from local.node.wiring import serve

EXIT_FAULT = 1
EXIT_UNSUITABLE_KERNEL = 3


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    _log_to_stderr()
    try:
        asyncio.run(serve(_settings(options)))
    except UnsuitableKernel as fault:
        return _say(fault, EXIT_UNSUITABLE_KERNEL)
    except FAULTS as fault:
        return _say(fault, EXIT_FAULT)
    except Exception as error:
        # A bug of ours: the user gets one line, SUBLET_DEBUG gives the trace to whoever mends it.
        structlog.get_logger().debug("unexpected end", exc_info=True)
        return _say(error, EXIT_FAULT)
    return 0


def _log_to_stderr() -> None:
    """Plain traces: the usual ones print local variables, and those may be tokens."""
    colors = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback),
        ],
        wrapper_class=structlog.make_filtering_bound_logger("debug" if os.environ.get("SUBLET_DEBUG") else "info"),
        logger_factory=logger_factory(log_lines()),
    )


def _say(error: Exception, code: int) -> int:
    print(f"error: {error or type(error).__name__}", file=sys.stderr)
    return code


def _settings(options: argparse.Namespace) -> NodeSettings:
    return NodeSettings(
        kubeconfig=options.kubeconfig,
        node_name=options.node_name,
        id=options.id,
        run_dir=options.run_dir,
        tls_cert=options.tls_cert,
        tls_key=options.tls_key,
        kubelet_token_file=options.kubelet_token_file,
        ready_file=options.ready_file,
        backoff_base_seconds=options.backoff_base,
        eviction=Limits(parse_thresholds(options.eviction_hard), options.eviction_pressure_transition_period),
        cgroup_root=options.cgroup_root,
        cgroup_driver=options.cgroup_driver,
        kernel=options.kernel,
        share=parse_share(options.share),
        claim=Claim(options.node_cpu, options.node_memory),
        images=options.images,
        client_ca=options.client_ca,
        static_programs=options.static_programs,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.node", description="A kubelet that runs pods as processes.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="how to reach the API server")
    parser.add_argument("--node-name", default=platform.node().lower(), help="name of the Node (this machine's)")
    parser.add_argument("--id", default="local", help="cgroups live under /sublet-<id>")
    parser.add_argument("--run-dir", type=Path, required=True, help="logs and private directories of pods (mode 0700)")
    parser.add_argument("--tls-cert", type=Path, required=True, help="certificate of the log server")
    parser.add_argument("--tls-key", type=Path, required=True, help="its key")
    parser.add_argument("--kubelet-token-file", type=Path, required=True, help="what a log reader must present")
    parser.add_argument("--ready-file", type=Path, help="written, as JSON, once the node is Ready")
    parser.add_argument(
        "--eviction-hard",
        default=DEFAULT_THRESHOLDS,
        metavar="SIGNAL<AMOUNT,…",
        help="when to evict a pod for the node's own sake (default: %(default)s)",
    )
    parser.add_argument(
        "--eviction-pressure-transition-period",
        type=float,
        default=TRANSITION_SECONDS,
        metavar="SECONDS",
        help="how long a pressure condition stays at least (default: %(default)s)",
    )
    parser.add_argument("--backoff-base", type=float, default=10.0, help="seconds of the first restart delay")
    parser.add_argument("--cgroup-root", type=Path, default=Path("/sys/fs/cgroup"), help="where cgroups are mounted")
    parser.add_argument(
        "--cgroup-driver",
        type=CgroupDriver,
        choices=list(CgroupDriver),
        default=CgroupDriver.CGROUPFS,
        help="how cgroups are named (default: %(default)s)",
    )
    parser.add_argument(
        "--kernel",
        type=Kernel,
        choices=list(Kernel),
        default=Kernel.REAL,
        help="simulated: an imitation of cgroup v2 in plain files below --cgroup-root (default: %(default)s)",
    )
    parser.add_argument("--share", default="1/1", metavar="NUMBER/NODES", help="which part of this machine the node is")
    parser.add_argument("--node-cpu", default="", metavar="QUANTITY", help="CPU the Node says it has")
    parser.add_argument("--node-memory", default="", metavar="QUANTITY", help="memory the Node says it has")
    parser.add_argument("--images", type=Path, metavar="DIR", help="the image store: <repository>/<tag>/rootfs below")
    parser.add_argument(
        "--client-ca",
        type=Path,
        metavar="FILE",
        help="also answer clients with a certificate of this authority who may `get nodes/proxy`, as a kubelet does; "
        "pods then have addresses that other machines' API servers accept",
    )
    parser.add_argument("--static-programs", type=Path, metavar="FILE", help="programs to show as static pods, as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())

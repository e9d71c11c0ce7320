"""`python -m scheduler`: the command line of the scheduler."""

from __future__ import annotations

import os

from kube.logs import LogFormat, configure

# What numpy multiplies here is small: a thread for each CPU of a large node would only hold memory.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# isort: split
# Above all others: whoever loads structlog or numpy first decides whether rich, or those threads, come with it.

import argparse
import asyncio
import ctypes
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import structlog

from kube.tls import TlsFiles
from model.fault import Fault, fault_in
from scheduler import settings
from scheduler.wiring import SchedulerOptions, run

log = structlog.get_logger()


def parse(argv: Sequence[str]) -> tuple[SchedulerOptions, LogFormat]:
    """Options from flags. Raises ConfigurationFault for a wrong settings file, SystemExit for wrong flags."""
    parser = argparse.ArgumentParser(prog="sublet scheduler", description="Places whole gangs and explains each wait.")
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="cluster access; without it the pod's service account")
    add("--tls-cert", type=Path, required=True, help="PEM certificate of the servers; read again when it changes")
    add("--tls-key", type=Path, required=True, help="PEM key of the servers; read again when it changes")
    callers = parser.add_mutually_exclusive_group(required=True)
    callers.add_argument("--token-review", action="store_true", help="the API server says who calls, and who may")
    callers.add_argument("--token-file", type=Path, help="lines `token,name` of who may call; for development")
    add("--link-audience", default="sublet-scheduler", help="of the tokens that count (default: %(default)s)")
    add(
        "--agent-account",
        default="sublet-system:sublet-agent",
        help="the agents', NAMESPACE:NAME (default: %(default)s)",
    )
    add("--link-listen", default="0.0.0.0:10318", help="agents and diagnostics, over TLS (default: %(default)s)")
    add("--grpc-listen", default="127.0.0.1:10319", help="plain-text diagnostics; loopback only (default: %(default)s)")
    add(
        "--http-listen",
        default="127.0.0.1:10320",
        help="/metrics and probes; HTTPS off loopback (default: %(default)s)",
    )
    add("--ready-file", type=Path, help="written with the real addresses once scheduling")
    add("--settings", type=Path, help="YAML or JSON; docs/settings.md lists fields and defaults")
    add("--identity", default=f"{socket.gethostname()}_{os.getpid()}", help="name in the lease (default: %(default)s)")
    add("--advertise-host", default=os.environ.get("POD_IP", ""), help="how agents reach this (default: $POD_IP)")
    add("--pod", default=_own_pod(), help="NAMESPACE/NAME, labelled while leading (default: $POD_NAMESPACE/$POD_NAME)")
    add("--log-format", type=LogFormat, choices=list(LogFormat), default=LogFormat.JSON, help="(default: %(default)s)")
    flags = parser.parse_args(argv)
    options = SchedulerOptions(
        kubeconfig=flags.kubeconfig,
        tls=TlsFiles(flags.tls_cert, flags.tls_key),
        token_file=flags.token_file,
        link_audience=flags.link_audience,
        agent_account=flags.agent_account,
        identity=flags.identity,
        settings=settings.load(flags.settings),
        link_listen=flags.link_listen,
        grpc_listen=flags.grpc_listen,
        http_listen=flags.http_listen,
        ready_file=flags.ready_file,
        advertise_host=flags.advertise_host,
        pod=flags.pod,
        console_log=flags.log_format is LogFormat.CONSOLE,
    )
    return options, flags.log_format


def keep_memory() -> None:
    """Let glibc keep what arrays give back for the next ones: mapping it again for each doubles the cost of a pass.

    Elsewhere nothing is done. The numbers are malloc.h's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, amounts are bytes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(-3, 1 << 25)
        mallopt(-1, 1 << 28)


def _own_pod() -> str:
    namespace, name = os.environ.get("POD_NAMESPACE", ""), os.environ.get("POD_NAME", "")
    return f"{namespace}/{name}" if namespace and name else ""


async def _serve(options: SchedulerOptions) -> str:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return await run(options, stop)


def main(argv: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT: 0. Leadership lost or a bug of ours: 1. A fault: one line and 2."""
    try:
        options, style = parse(argv)
        configure(style)
        keep_memory()
        lost = asyncio.run(_serve(options))
    except Fault as fault:
        return _report(fault)
    except BaseExceptionGroup as group:
        if (known := fault_in(group)) is not None:
            return _report(known)
        log.error("internal error; this is a bug of the scheduler", exc_info=True)
        return 1
    if lost:
        print(f"error: {lost}", file=sys.stderr)
    return int(bool(lost))


def _report(fault: Fault) -> int:
    print(f"error: {fault}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m admission`: the command line of the admission program."""

from __future__ import annotations

from kube.logs import LogFormat, configure

# isort: split
# Above all others, since whoever loads structlog first decides whether rich comes with it.

import argparse
import asyncio
import os
import signal
import socket
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import structlog

from admission import settings
from admission.wiring import AdmissionOptions, run
from kube.tls import TlsFiles
from model.fault import ConfigurationFault, Fault, fault_in

log = structlog.get_logger()


class CertificateSource(StrEnum):
    """Where certificates come from."""

    OWN = "own"
    FILES = "files"


def parse(argv: Sequence[str]) -> tuple[AdmissionOptions, LogFormat]:
    """Options from flags. Raises ConfigurationFault for what cannot be, SystemExit for wrong flags."""
    parser = argparse.ArgumentParser(
        prog="sublet admission", description="Makes batch pods batch, and refuses what cannot be."
    )
    add = parser.add_argument
    add("--kubeconfig", type=Path, help="cluster access; without it the pod's service account")
    add(
        "--namespace",
        default=os.environ.get("POD_NAMESPACE") or "sublet-system",
        help="of Secrets and lease (default: %(default)s)",
    )
    add("--listen", default="0.0.0.0:10321", help="webhooks, over TLS (default: %(default)s)")
    add(
        "--http-listen",
        default="127.0.0.1:10322",
        help="/metrics and probes; HTTPS off loopback (default: %(default)s)",
    )
    add(
        "--certificates",
        type=CertificateSource,
        choices=list(CertificateSource),
        default=CertificateSource.OWN,
        help="own: made and rotated here; files: --tls-cert, --tls-key (default: %(default)s)",
    )
    add("--tls-cert", type=Path, help="PEM certificate, read again when it changes; with --certificates files")
    add("--tls-key", type=Path, help="PEM key, read again when it changes; with --certificates files")
    add("--ready-file", type=Path, help="written with the real addresses once reviewing")
    add("--settings", type=Path, help="YAML or JSON; docs/settings.md lists fields and defaults")
    add("--identity", default=f"{socket.gethostname()}_{os.getpid()}", help="name in the lease (default: %(default)s)")
    add("--log-format", type=LogFormat, choices=list(LogFormat), default=LogFormat.JSON, help="(default: %(default)s)")
    flags = parser.parse_args(argv)
    options = AdmissionOptions(
        kubeconfig=flags.kubeconfig,
        identity=flags.identity,
        tls=_tls(flags),
        namespace=flags.namespace,
        settings=settings.load(flags.settings),
        listen=flags.listen,
        http_listen=flags.http_listen,
        ready_file=flags.ready_file,
    )
    return options, flags.log_format


def _tls(flags: argparse.Namespace) -> TlsFiles | None:
    given = (flags.tls_cert, flags.tls_key)
    if flags.certificates is CertificateSource.OWN:
        if any(given):
            raise ConfigurationFault(
                "--tls-cert, --tls-key", "belong to --certificates files", "add that, or leave them out"
            )
        return None
    if not all(given):
        raise ConfigurationFault("--certificates files", "has no files", "give --tls-cert FILE and --tls-key FILE")
    return TlsFiles(*given)


async def _serve(options: AdmissionOptions) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return await run(options, stop)


def main(argv: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT: 0. A fault somebody can mend: one line and 2. A bug of ours: 1."""
    try:
        options, style = parse(argv)
        configure(style)
        return asyncio.run(_serve(options))
    except Fault as fault:
        return _report(fault)
    except BaseExceptionGroup as group:
        if (known := fault_in(group)) is not None:
            return _report(known)
        log.error("internal error; this is a bug of the admission program", exc_info=True)
        return 1


def _report(fault: Fault) -> int:
    print(f"error: {fault}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

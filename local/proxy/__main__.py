"""`python -m local.proxy`: the service network of the embedded cluster as a process of its own.

Exit: 0 ended by a signal · 1 could not start or go on · 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import structlog

from embedded.proxy.settings import Pick, ProxyAccess, ProxySettings
from kube.logs import log_lines, logger_factory
from local.faults import FAULTS
from local.proxy.wiring import serve

EXIT_FAULT = 1
_DEFAULTS = ProxySettings()


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    structlog.configure(logger_factory=logger_factory(log_lines()))
    settings = ProxySettings(
        pick=Pick(options.pick),
        most_connections=options.most_connections,
        drain_seconds=options.drain_seconds,
        routed=options.routed,
    )
    try:
        asyncio.run(serve(settings, ProxyAccess(options.kubeconfig, options.ready_file)))
    except FAULTS as fault:
        print(f"error: {fault}", file=sys.stderr)
        return EXIT_FAULT
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.proxy", description="Addresses of Services, on loopback.")
    parser.add_argument("--kubeconfig", type=Path, help="how to reach the API server; in a pod its own account")
    parser.add_argument(
        "--pick",
        choices=[str(pick) for pick in Pick],
        default=str(_DEFAULTS.pick),
        help="which endpoint the next connection goes to (default: %(default)s)",
    )
    parser.add_argument("--most-connections", type=int, default=_DEFAULTS.most_connections, metavar="N")
    parser.add_argument(
        "--drain-seconds",
        type=float,
        default=_DEFAULTS.drain_seconds,
        metavar="S",
        help="how long connections to what is gone may go on (default: %(default)s)",
    )
    parser.add_argument(
        "--routed",
        action="store_true",
        help="serve any IPv4 address, which becomes one of this machine's meanwhile (needs root)",
    )
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="written, as JSON, once all addresses serve")
    return parser


if __name__ == "__main__":
    sys.exit(main())

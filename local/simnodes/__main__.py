"""`python -m local.simnodes`: simulated nodes as a program of their own, on any API server.

Exit codes: 0 stopped by a signal · 1 could not start or go on · 2 wrong arguments.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import structlog

from kube.logs import log_lines, logger_factory
from local.faults import FAULTS
from local.simnodes.settings import (
    Access,
    Pace,
    Simulation,
    amount,
    parse_labels,
    parse_pools,
    with_resources,
)
from local.simnodes.trace import read_trace
from local.simnodes.usage import DailyCurve
from local.simnodes.wiring import serve

EXIT_FAULT = 1


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    structlog.configure(logger_factory=logger_factory(log_lines()))
    try:
        load = read_trace(options.trace) if options.trace else DailyCurve()
        asyncio.run(serve(_simulation(options), load, _access(options)))
    except FAULTS as fault:
        print(f"error: {fault}", file=sys.stderr)
        return EXIT_FAULT
    return 0


def _simulation(options: argparse.Namespace) -> Simulation:
    found = Simulation(
        options.count,
        options.prefix,
        amount("--cpu", options.cpu, cpu=True),
        amount("--memory", options.memory, cpu=False),
        parse_labels(options.labels),
        Pace(options.time_factor),
        pools=parse_pools(options.label),
    )
    return with_resources(found, options.resource)


def _access(options: argparse.Namespace) -> Access:
    return Access(options.kubeconfig, options.tls_cert, options.tls_key, options.kubelet_token_file, options.ready_file)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local.simnodes", description="Nodes that exist in the API only.")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="how to reach the API server")
    parser.add_argument("--count", type=int, required=True, metavar="N", help="how many nodes")
    parser.add_argument("--prefix", default="sim", help="names are PREFIX-0, PREFIX-1, … (default: %(default)s)")
    parser.add_argument("--cpu", default="32", metavar="QUANTITY", help="of each node (default: %(default)s)")
    parser.add_argument("--memory", default="128Gi", metavar="QUANTITY", help="of each node (default: %(default)s)")
    parser.add_argument("--labels", default="", metavar="K=V,…", help="more labels of each node")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="K=V[,V…]",
        help="one more label; several values are given to the nodes in turn, so that they form pools; repeat",
    )
    parser.add_argument(
        "--resource",
        action="append",
        default=[],
        metavar="NAME=QUANTITY",
        help="what each node has, such as nvidia.com/gpu=8; cpu and memory stand for --cpu and --memory; repeat",
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="CSV of machine,t_s,cpu_pct,mem_pct, plain or gzip")
    parser.add_argument(
        "--time-factor",
        type=float,
        default=1.0,
        metavar="X",
        help="how much faster use and simulated runs pass: 288 plays a day in five minutes (default: 1)",
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate of the server for metrics.k8s.io")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="its key")
    parser.add_argument("--kubelet-token-file", type=Path, metavar="FILE", help="what its readers must present")
    parser.add_argument("--ready-file", type=Path, metavar="FILE", help="written, as JSON, once all are registered")
    return parser


if __name__ == "__main__":
    sys.exit(main())

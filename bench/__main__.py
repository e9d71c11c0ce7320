"""`python -m bench`: every benchmark, or one of them; prints tables and writes bench/results/latest.json.

The exit code is 0 also where a target is missed or the machine is unsuitable (then it says `skipped`); 1 where the
benchmark itself failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from bench import report
from bench.agent import Duration, measure_agent
from bench.hierarchies import Hierarchies, discover
from bench.imports import measure_imports
from bench.observe import Effort, observe
from model.fault import Fault, KernelFault

RESULTS = Path(__file__).parent / "results" / "latest.json"
_PODS = (110, 250)
_AGENT_PODS = 250
_PARTS = ("imports", "observe", "agent")
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    for number in _ENDING:
        signal.signal(number, _end)
    try:
        hierarchies = discover()
    except KernelFault as fault:
        print(f"skipped: {fault}")
        return 0
    try:
        results = _run(arguments, hierarchies)
    except Fault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    report.show(results, report.console())
    report.save(results, RESULTS)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What an observation and the agent cost.")
    parser.add_argument("part", nargs="?", choices=_PARTS, help="only this part (default: all)")
    parser.add_argument("--pods", type=_positive, action="append", help="size of the node; repeatable")
    parser.add_argument("--active", type=_positive, default=8, help="containers with a live process (default: 8)")
    parser.add_argument("--seconds", type=_positive, default=60, help="how long the agent is measured (default: 60)")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _run(arguments: argparse.Namespace, hierarchies: Hierarchies) -> report.Results:
    """What was asked for; one line on standard error before each part, since the whole takes minutes."""
    wanted = (arguments.part,) if arguments.part else _PARTS
    machine = report.this_machine()
    reading, agents, imports = [], [], []
    if "imports" in wanted:
        _tell("importing what the agent imports")
        imports = measure_imports()
    if "observe" in wanted:
        for pods in arguments.pods or _PODS:
            _tell(f"reading {pods} pods")
            reading.append(observe(hierarchies, pods, arguments.active, Effort()))
    if "agent" in wanted:
        for pods in arguments.pods or (_AGENT_PODS,):
            _tell(f"running the agent beside {pods} pods")
            duration = Duration(seconds=arguments.seconds)
            agents.append(measure_agent(hierarchies, pods, arguments.active, duration))
    return report.Results(machine, tuple(reading), tuple(agents), tuple(imports))


def _tell(line: str) -> None:
    print(f"bench: {line}", file=sys.stderr, flush=True)


def _end(number: int, frame: FrameType | None) -> None:
    """Leave through every clean-up; a second signal must not cut it short."""
    for other in _ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

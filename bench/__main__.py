"""`python -m bench`: what the agent costs, what it gains (`colocate`), how soon it acts (`react`), the speed of the
embedded API server (`api`), how fast and how well the scheduler decides (`schedule`), what a preemption costs a job
that trains (`preemption`), and, in simulated time, how long Kueue's published scenario takes (`queues`) and how far off
expected starts are (`estimates`).

Prints tables and writes bench/results: latest.json, colocate.json (`--servers`: servers.json), react.json, api.json,
schedule.json, preemption.json, queues.json, estimates.json and pictures of colocate, react and api. The exit is 0 also
where a target is missed or the machine is unsuitable (then it says `skipped`); 1 where the benchmark itself failed.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import msgspec

from bench import plot, tables
from bench.agent import report
from bench.agent.imports import measure_imports
from bench.agent.observe import ObservationEffort, observe
from bench.agent.process import Duration, measure_agent
from bench.api import benchmark as api
from bench.api import report as api_report
from bench.colocate import benchmark as colocate
from bench.colocate import report as colocate_report
from bench.colocate.loads import LoadFault
from bench.colocate.rows import (
    ALL_ROWS,
    GROUPS,
    SERVER_GROUPS,
    SERVER_ROWS,
    chosen,
    chosen_for_servers,
    with_other_agent,
)
from bench.colocate.servers import SERVERS
from bench.hierarchies import Hierarchies, discover
from bench.machine import this_machine
from bench.preemption import benchmark as preemption
from bench.preemption import report as preemption_report
from bench.react import benchmark as react
from bench.react import report as react_report
from bench.schedule import benchmark as schedule
from bench.schedule import effort as schedule_effort
from bench.schedule import report as schedule_report
from bench.simulated import benchmark as simulated
from bench.simulated import report as simulated_report
from local.faults import FAULTS
from model.fault import KernelFault

RESULTS = Path(__file__).parent / "results" / "latest.json"
COLOCATE, SERVERS_RESULT, REACT, API, SCHEDULE, PREEMPTION, QUEUES, ESTIMATES = (
    RESULTS.with_name(f"{name}.json")
    for name in ("colocate", "servers", "react", "api", "schedule", "preemption", "queues", "estimates")
)
_DATA = "SUBLET_BENCH_DATA"
_PODS = (110, 250)
_AGENT_PODS = 250
_AGENT_SECONDS = 60
_HOGS = (1, 2, 4, 8)
_COSTS = ("imports", "observe", "agent")
_PARTS = (*_COSTS, "colocate", "react", "api", "schedule", "preemption", "queues", "estimates")
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    for number in _ENDING:
        signal.signal(number, _end)
    try:
        return _measure(arguments)
    except FAULTS as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1


def _measure(arguments: argparse.Namespace) -> int:
    without_cgroups = {
        "api": _api,
        "schedule": _schedule,
        "preemption": _preemption,
        "queues": _queues,
        "estimates": _estimates,
    }
    if arguments.part in without_cgroups:
        without_cgroups[arguments.part](arguments)
        return 0
    try:
        hierarchies = discover()
    except KernelFault as fault:
        print(f"skipped: {fault}")
        return 0
    parts = {"colocate": _colocate, "react": _react}
    parts.get(arguments.part, _costs)(arguments, hierarchies)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What the agent costs, and what it is for.")
    parser.add_argument("part", nargs="?", choices=_PARTS, help="only this part (default: imports, observe and agent)")
    parser.add_argument("--pods", type=_positive, action="append", help="size of the node; repeatable")
    parser.add_argument("--active", type=_positive, default=8, help="containers with a live process (default: 8)")
    parser.add_argument("--seconds", type=_positive, help="how long the agent is measured (default: 60), or a run")
    parser.add_argument("--quick", action="store_true", help="all but the costs: once and short, to see that it works")
    parser.add_argument("--runs", type=_positive, help="colocate: clean runs of each row (default: 5)")
    rows = dict.fromkeys((*GROUPS, *ALL_ROWS, *SERVER_GROUPS, *SERVER_ROWS))
    parser.add_argument("--rows", nargs="+", choices=list(rows), help="colocate: only these rows or groups")
    parser.add_argument(
        "--servers", nargs="*", choices=list(SERVERS), help="colocate: these real servers (default: all) as the service"
    )
    parser.add_argument(
        "--hogs",
        type=_positive,
        nargs="+",
        default=_HOGS,
        help=f"colocate --servers: batch processes (default: {_HOGS})",
    )
    parser.add_argument(
        "--rate", type=_positive, help="colocate: requests a second and CPU (default: by the kind of requests)"
    )
    parser.add_argument(
        "--other-agent",
        type=Path,
        metavar="FOLDER",
        help="colocate: rows with an agent also with that of this checkout",
    )
    parser.add_argument("--minutes", type=_positive, help="colocate: no dirty run is repeated after that (default: 20)")
    parser.add_argument("--surges", type=_positive, help="react: surges with and without the brake (default: 50)")
    parser.add_argument("--preemptions", type=_positive, help="preemption: how many (default: 50)")
    parser.add_argument("--restarts", type=_positive, help="react: restarts of each kind (default: 3)")
    parser.add_argument("--data", type=Path, help=f"schedule, estimates: folder of trace data (default: ${_DATA})")
    parser.add_argument("--only", nargs="+", choices=schedule.PARTS, help="schedule: only these parts")
    parser.add_argument("--out", type=Path, default=RESULTS.parent, help="where results go (default: bench/results)")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _costs(arguments: argparse.Namespace, hierarchies: Hierarchies) -> None:
    results = _run(arguments, hierarchies)
    report.show(results, tables.console())
    report.save(results, arguments.out / RESULTS.name)


def _colocate(arguments: argparse.Namespace, hierarchies: Hierarchies) -> None:
    effort = colocate.QUICK if arguments.quick else colocate.ColocationEffort()
    asked = {name: getattr(arguments, name) for name in ("runs", "seconds", "minutes", "rate")}
    effort = msgspec.structs.replace(effort, **{name: value for name, value in asked.items() if value is not None})
    servers = None if arguments.servers is None else [SERVERS[name].kind for name in arguments.servers or SERVERS]
    try:
        rows = chosen(arguments.rows) if servers is None else chosen_for_servers(arguments.rows, arguments.hogs)
    except KeyError as error:
        raise LoadFault(f"--rows {error.args[0]}", "no such row with or without --servers as asked") from None
    if arguments.other_agent is not None:
        rows = with_other_agent(rows, arguments.other_agent.resolve(strict=True))
    measured = colocate.measure_colocation(hierarchies, rows, effort, servers or ())
    colocate_report.show(measured, tables.console(colocate_report.WIDTH))
    path = arguments.out / (COLOCATE if servers is None else SERVERS_RESULT).name
    colocate_report.save(measured, path)
    if servers is None and plot.available():
        plot.plot_colocation(measured, path.with_suffix(".svg"))


def _react(arguments: argparse.Namespace, hierarchies: Hierarchies) -> None:
    effort = react.QUICK if arguments.quick else react.ReactionEffort()
    if arguments.surges is not None:
        effort = msgspec.structs.replace(effort, surges=arguments.surges)
    if arguments.restarts is not None:
        effort = msgspec.structs.replace(effort, restarts=arguments.restarts)
    measured = react.measure_reaction(hierarchies, effort)
    react_report.show(measured, tables.console())
    path = arguments.out / REACT.name
    react_report.save(measured, path)
    if plot.available():
        plot.plot_reaction(measured, path.with_suffix(".svg"))


def _api(arguments: argparse.Namespace) -> None:
    measured = api.measure_api(api.QUICK if arguments.quick else api.ApiEffort())
    api_report.show(measured, tables.console(api_report.WIDTH))
    path = arguments.out / API.name
    api_report.save(measured, path)
    if plot.available():
        plot.plot_api(measured, path.with_suffix(".svg"))


def _schedule(arguments: argparse.Namespace) -> None:
    effort = schedule_effort.QUICK if arguments.quick else schedule_effort.SchedulingEffort()
    measured = schedule.measure_schedule(effort, _data(arguments), tuple(arguments.only or schedule.PARTS))
    schedule_report.show(measured, tables.console(schedule_report.WIDTH))
    schedule_report.save(measured, arguments.out / SCHEDULE.name)


def _preemption(arguments: argparse.Namespace) -> None:
    effort = preemption.QUICK if arguments.quick else preemption.PreemptionEffort()
    if arguments.preemptions is not None:
        effort = msgspec.structs.replace(effort, preemptions=arguments.preemptions)
    measured = preemption.measure_preemption(effort)
    preemption_report.show(measured, tables.console())
    preemption_report.save(measured, arguments.out / PREEMPTION.name)


def _queues(arguments: argparse.Namespace) -> None:
    measured = simulated.measure_scenarios(simulated.QUICK if arguments.quick else simulated.SimulatedEffort())
    _show_simulated(measured, arguments.out / QUEUES.name)


def _estimates(arguments: argparse.Namespace) -> None:
    effort = simulated.QUICK if arguments.quick else simulated.SimulatedEffort()
    _show_simulated(simulated.measure_estimates(effort, _data(arguments)), arguments.out / ESTIMATES.name)


def _show_simulated(measured: simulated.Simulated, path: Path) -> None:
    simulated_report.show(measured, tables.console(simulated_report.WIDTH))
    simulated_report.save(measured, path)


def _data(arguments: argparse.Namespace) -> Path | None:
    """The folder of traces."""
    told = os.environ.get(_DATA)
    return arguments.data or (Path(told) if told else None)


def _run(arguments: argparse.Namespace, hierarchies: Hierarchies) -> report.Results:
    """What was asked for; one line on standard error before each part, since the whole takes minutes."""
    wanted = (arguments.part,) if arguments.part else _COSTS
    machine = this_machine()
    reading, agents, imports = [], [], []
    if "imports" in wanted:
        _tell("importing what the agent imports")
        imports = measure_imports()
    if "observe" in wanted:
        for pods in arguments.pods or _PODS:
            _tell(f"reading {pods} pods")
            reading.append(observe(hierarchies, pods, arguments.active, ObservationEffort()))
    if "agent" in wanted:
        for pods in arguments.pods or (_AGENT_PODS,):
            _tell(f"running the agent beside {pods} pods")
            duration = Duration(seconds=arguments.seconds or _AGENT_SECONDS)
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

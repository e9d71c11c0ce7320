"""Costs of one observation to each reader: CPU time a pass and a file, hot and once a second."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from types import TracebackType

import msgspec

from bench import native
from bench.agent.files import ReadPlan, observation_plan
from bench.agent.reader_process import ReadAnswer, ReadRequest
from bench.agent.readers import Totals
from bench.agent.workers import Workers
from bench.hierarchies import Hierarchies
from bench.tree import BenchTree, place
from model.fault import Fault

_AGREE_TRIES = 20
_AGREE_PAUSE_SECONDS = 0.25
_STOP_BOUND_SECONDS = 5.0


class ObservationEffort(msgspec.Struct, frozen=True):
    """How much is measured: readers take turns for `rounds`, each reading `passes` times in its turn.

    Passes come in tens, so that the tick's slow files are all read once in a turn.
    """

    hot_rounds: int = 7
    hot_passes: int = 10
    paced_rounds: int = 2
    paced_passes: int = 10
    interval_seconds: float = 1.0


class Cost(msgspec.Struct, frozen=True):
    """CPU time of one pass, the median over the rounds."""

    hot_ms: float
    paced_ms: float


class ReadingResult(msgspec.Struct, frozen=True):
    """Costs by reader; `absent` says why another could not take part."""

    pods: int
    files: int
    groups: Mapping[str, int]
    costs: Mapping[str, Cost]
    absent: Mapping[str, str]


class BenchFault(Fault):
    """The benchmark itself is wrong: a reader died, or readers disagree about what the files say."""


class ReaderProcess:
    """A reader that waits for requests; see bench/agent/reader_process.py."""

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        pipe, root = subprocess.PIPE, Path(__file__).parents[2]
        # A session of its own: Ctrl-C is for the benchmark, which then ends its readers.
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=root, start_new_session=True)
        self._line()

    def ask(self, request: ReadRequest) -> ReadAnswer:
        """Raises BenchFault where the reader has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._line(), type=ReadAnswer)

    def __enter__(self) -> ReaderProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_BOUND_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise BenchFault(f"reader {self.name}", "ended early", "its message is above")
        return line


def observe(hierarchies: Hierarchies, pods: int, active: int, effort: ObservationEffort) -> ReadingResult:
    """Make a tree of `pods` with `active` busy containers and let every reader read it."""
    with tempfile.TemporaryDirectory(prefix="sublet-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        tree = stack.enter_context(BenchTree(hierarchies, [place(index) for index in range(pods)]))
        workers = stack.enter_context(Workers(tree, active))
        plan = observation_plan(hierarchies, tree.roles)
        (folder / "plan.json").write_bytes(msgspec.json.encode(plan))
        commands, absent = _commands(folder)
        readers = [stack.enter_context(ReaderProcess(reader, command)) for reader, command in commands.items()]
        # Ours as the tick reads is the one that leaves numbers as they are for a while.
        agree([reader for reader in readers if reader.name != "tick"], workers)
        hot = rounds(readers, effort.hot_rounds, ReadRequest(effort.hot_passes))
        paced = rounds(readers, effort.paced_rounds, ReadRequest(effort.paced_passes, effort.interval_seconds))
        costs = {reader: Cost(hot[reader], paced[reader]) for reader in hot}
        groups = _sizes(plan)
        return ReadingResult(pods, sum(groups.values()), groups, costs, absent)


def agree(readers: Sequence[ReaderProcess], workers: Workers) -> None:
    """Every reader finds the same numbers while nothing moves, and none of them zero. Raises BenchFault."""
    workers.pause()
    try:
        for _ in range(_AGREE_TRIES):
            found = {reader.name: reader.ask(ReadRequest(1)).totals for reader in readers}
            if _same(found):
                return
            # The kernel may still be folding what the workers did just before they stopped.
            time.sleep(_AGREE_PAUSE_SECONDS)
        raise BenchFault("readers", f"they do not agree on files that stand still: {found}")
    finally:
        workers.resume()


def rounds(readers: Sequence[ReaderProcess], count: int, request: ReadRequest) -> dict[str, float]:
    """Median CPU milliseconds a pass. Readers take turns, so that what else runs here favours none of them."""
    spent: dict[str, list[float]] = {reader.name: [] for reader in readers}
    for _ in range(count):
        for reader in readers:
            spent[reader.name].append(reader.ask(request).cpu_ns / request.passes / 1e6)
    return {name: median(costs) for name, costs in spent.items()}


def _same(found: Mapping[str, Totals]) -> bool:
    """Each group has one sum, and not zero, among those that tell it."""
    sums: dict[str, set[int]] = {}
    for totals in found.values():
        for group, total in totals.items():
            sums.setdefault(group, set()).add(total)
    return all(len(values) == 1 and 0 not in values for values in sums.values())


def _commands(folder: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Command line of each reader that can run here, and why the others cannot."""
    plan = str(folder / "plan.json")
    python = [sys.executable, "-m", "bench.agent.reader_process"]
    commands = {name: [*python, name, plan] for name in ("ours", "tick", "plain")}
    absent = {}
    floor, go = native.build_floor(folder), native.build_go(folder)
    if isinstance(floor, Path):
        commands["floor"] = [*python, "floor", plan, str(floor)]
    else:
        absent["floor"] = floor.why
    if isinstance(go, Path):
        commands["go"] = [str(go), plan]
    else:
        absent["go"] = go.why
    return commands, absent


def _sizes(plan: ReadPlan) -> dict[str, int]:
    return {group.name: len(group.paths) for group in plan.groups}

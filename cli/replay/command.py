"""`sublet replay`: decide a journal again, and say whether it comes out the same, or what other settings would lend."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from agent.ports import TickResult
from agent.settings import load_settings
from cli.formats import TableFormat
from cli.tables import aligned
from model.explain import OFFERED
from model.fault import ConfigurationFault
from model.pod.status import PodPhase
from model.resources import CPU, MEMORY
from view.replayed import LENT_SCALES, Point, ReplayOutcome, comparison, differences

DIFFERENT = 1
_SHOWN_DIFFERENCES = 5


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A journal written by `sublet agent --journal`.")],
    settings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Agent settings to try on the recorded facts.")
    ] = None,
    plot: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Draw what was lent beside what was used and reserved: a .png or .svg file; repeatable.",
        ),
    ] = None,
    output: Annotated[
        TableFormat, typer.Option("-o", "--output", help="With --settings: table or json.")
    ] = TableFormat.TABLE,
) -> int:
    """Decide a recorded journal again.

    Without --settings every decision must come out as it was recorded: exit code 1 and the first differences where
    one does not. With --settings: what would have been lent, beside what was.
    """
    from cli.replay.plot import draw, require

    require(plot or ())
    if output is TableFormat.JSON and settings is None:
        raise ConfigurationFault("--output json", "needs --settings", "without them the exit code is the answer")
    outcome = _decided(file, settings)
    for path in plot or ():
        draw(outcome.points, path, compare=settings is not None)
    if settings is None:
        return _print_outcome(outcome)
    if output is TableFormat.JSON:
        print(msgspec.json.format(msgspec.json.encode(outcome.points)).decode())
    else:
        print(_text(outcome.points))
    return 0


def _decided(file: Path, settings: Path | None) -> ReplayOutcome:
    from agent.replay import replay as decide

    other = load_settings(settings) if settings else None
    outcome = ReplayOutcome([])
    for replayed in decide(_lines(file), str(file), other):
        now = replayed.result
        outcome.decisions += len(now.decisions)
        found = (d for d in replayed.recorded if d.name in LENT_SCALES and d.policy != OFFERED)
        lent = {d.name: d.value for d in found if "/zone/" not in d.subject}
        would_lend = {d.name: d.value for d in now.lending.reclaimable}
        outcome.points.append(Point(now.observation.at_seconds, lent, would_lend, *_circumstances(now)))
        if other is None and not replayed.identical:
            outcome.different_ticks += 1
            rest = max(_SHOWN_DIFFERENCES - len(outcome.differences), 0)
            told = differences(replayed.recorded, now.decisions)
            at = f"{datetime.fromtimestamp(now.observation.at_seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
            outcome.differences += [f"{at}  {text}" for text in islice(told, rest)]
    if not outcome.points:
        raise ConfigurationFault(str(file), "holds no tick", "let the agent run for a few seconds with --journal")
    return outcome


def _circumstances(now: TickResult) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """What the node has, what is reserved of it and what is used, as a Point has them."""
    node, usage = now.facts.node, now.usage
    amounts = {name: node.allocatable[name] for name in (CPU, MEMORY)} if node else {}
    pods = [pod for pod in now.facts.pods or () if pod.status.phase is PodPhase.RUNNING]
    reserved = {name: sum(pod.spec.requests[name] for pod in pods) for name in (CPU, MEMORY)}
    if usage is None:
        return amounts, reserved, {}
    cpu = usage.node.live.cpu_millis - usage.best_effort.live.cpu_millis
    memory = usage.node.live.memory_bytes - usage.best_effort.live.memory_bytes
    return amounts, reserved, {CPU: max(cpu, 0), MEMORY: max(memory, 0)}


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            yield from stream
    except OSError as error:
        raise ConfigurationFault(str(file), f"cannot be read: {error.strerror}", "give a journal file") from error


def _print_outcome(outcome: ReplayOutcome) -> int:
    for text in outcome.differences:
        print(text)
    ticks = len(outcome.points)
    same = f"different in {outcome.different_ticks} of them" if outcome.different_ticks else "all identical"
    print(f"{outcome.decisions} decisions in {ticks} ticks: {same}")
    return DIFFERENT if outcome.different_ticks else 0


def _text(points: list[Point]) -> str:
    """Times and figures of the comparison below each other."""
    found = comparison(points)
    slices = ((_moment(each.begin_seconds), *each.cells) for each in found.slices)
    lines = aligned([*found.heads, *slices, *found.figures], left=1)
    lines.insert(len(lines) - len(found.figures), "")
    return "\n".join([found.title, "", *lines])


def _moment(at_seconds: float) -> str:
    return f"{datetime.fromtimestamp(at_seconds, UTC):%Y-%m-%d %H:%M:%S}"

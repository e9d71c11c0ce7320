"""Tables and targets of bench/api, and its JSON file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from bench.api.benchmark import BY_NODE, ECHO, EVERYONE, MEMORY, PLAIN, PLAIN_BY_NODE, STATE, Api, Lists
from bench.figures import ColocationTarget, interval, ratios, told
from bench.tables import block

LIST_TIMES, DELIVERIES_PER_SECOND, PAUSE_MS = 2.0, 30_000.0, 20.0
"""What is wanted: a list beside plain joins, deliveries to watchers, the longest collection of garbage."""
WIDTH = 126


class ApiResults(msgspec.Struct, frozen=True):
    """What is written: every figure, and what follows from them."""

    measured: Api
    targets: tuple[tuple[str, float, float | None, str], ...]


def targets(measured: Api) -> list[ColocationTarget]:
    lists, held = measured.lists, measured.held
    inside = ratios(lists.inside["list"], lists.inside["join"])
    missing = max(float(watch.lost) for watch in measured.watches if watch.who in (EVERYONE, BY_NODE))
    return [
        ColocationTarget(f"list of {lists.pods} pods / plain join of the stored bytes", inside, LIST_TIMES),
        ColocationTarget("the same over TLS / the join over TLS", ratios(lists.over_tls, lists.plain_tls), LIST_TIMES),
        ColocationTarget(
            "deliveries/s to 10 watchers", interval(deliveries(measured, EVERYONE)), DELIVERIES_PER_SECOND, False
        ),
        ColocationTarget("events lost by any watcher", interval([missing]), 0.0),
        ColocationTarget("full garbage collection, ms", interval([each * 1000 for each in held.pauses]), PAUSE_MS),
    ]


def deliveries(measured: Api, who: str) -> list[float]:
    """A second, of each publication; none where not all came."""
    return [each.deliveries / each.seconds if each.seconds else 0.0 for each in measured.watches if each.who == who]


def show(measured: Api, console: Console) -> None:
    machine = measured.machine
    console.print(f"{machine.cpus} CPUs {machine.cpu}, kernel {machine.kernel}, load {machine.load_1m:.2f} before")
    columns = ("", "at once", "echo/s", "ours/s", "/ echo", "--state-dir", "/ without")
    block(
        console, "pods created over TLS, and the same client's requests to an echo server", columns, _creates(measured)
    )
    lists, size = measured.lists, measured.lists.pod_bytes
    block(
        console, f"lists of {lists.pods} pods of {size} bytes", ("", "ms", "/ baseline", "baseline ms"), _lists(lists)
    )
    title = f"{measured.effort.events} changes of these pods, watched"
    block(console, title, ("", "deliveries/s", "/ baseline", "lost"), _watches(measured))
    title = f"{measured.effort.held_pods} pods held"
    block(console, title, ("", "full collection ms", "RSS MiB"), _memory(measured))
    listed = [[t.name, told(t.measured), f"{_bound(t)}", t.verdict.value] for t in targets(measured)]
    block(console, "targets", ("", "measured", "", ""), listed)


def save(measured: Api, path: Path) -> None:
    listed = tuple(
        (t.name, t.limit, t.measured.middle if t.measured else None, t.verdict.value) for t in targets(measured)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(ApiResults(measured, listed)), indent=2) + b"\n")


def _creates(measured: Api) -> list[list[str]]:
    rows = []
    for each in measured.creates:
        echo, ours, state = (each.per_second[name] for name in (ECHO, MEMORY, STATE))
        rates = [told(interval(rate), 0) for rate in (echo, ours, state)]
        shares = [told(ratios(ours, echo)), told(ratios(state, ours))]
        size = f"{each.size_bytes} bytes"
        rows.append([size, str(each.connections), rates[0], rates[1], shares[0], rates[2], shares[1]])
    return rows


def _lists(lists: Lists) -> list[list[str]]:
    names = {
        "list": "whole, in the server",
        "page": "limit=500, in the server",
        "node": "fieldSelector of one node, in the server",
        "table": "whole as a Table, in the server",
        "table page": "limit=500 as a Table, in the server",
    }
    join = lists.inside["join"]
    rows = [_list(title, lists.inside[name], join) for name, title in names.items()]
    return [*rows, _list("whole, over TLS", lists.over_tls, lists.plain_tls)]


def _list(title: str, taken: Sequence[float], baseline: Sequence[float]) -> list[str]:
    ms, other = (told(interval([each * 1000 for each in some]), 1) for some in (taken, baseline))
    return [title, ms, told(ratios(taken, baseline)), other]


def _watches(measured: Api) -> list[list[str]]:
    """Each beside its baseline; a baseline beside nothing."""
    rows = []
    for who, baseline in ((PLAIN, ""), (EVERYONE, PLAIN), (PLAIN_BY_NODE, ""), (BY_NODE, PLAIN_BY_NODE)):
        rates = deliveries(measured, who)
        share = told(ratios(rates, deliveries(measured, baseline))) if baseline else "-"
        missing = sum(each.lost for each in measured.watches if each.who == who)
        rows.append([who, told(interval(rates), 0), share, str(missing)])
    return rows


def _memory(measured: Api) -> list[list[str]]:
    held = {
        "server without pods": measured.held_empty,
        "server": measured.held,
        "the same as dictionaries": measured.held_as_dictionaries,
    }
    return [
        [name, told(interval([each * 1000 for each in one.pauses])), f"{one.rss_mib:.0f}"] for name, one in held.items()
    ]


def _bound(target: ColocationTarget) -> str:
    return f"{'<=' if target.at_most else '>='} {target.limit:g}"

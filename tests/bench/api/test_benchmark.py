"""What counts as lost, what the targets ask for, and one small run of the whole."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from bench.api.benchmark import (
    BY_NODE,
    ECHO,
    EVERYONE,
    MEMORY,
    PLAIN,
    PLAIN_BY_NODE,
    STATE,
    Api,
    ApiEffort,
    Creates,
    Lists,
    Memory,
    Publication,
    lost,
    measure_api,
)
from bench.api.pods import LARGE_BYTES, MIDDLE_BYTES, SMALL_BYTES, body, named, template
from bench.api.receiver import Events, digest
from bench.api.report import save, show, targets
from bench.figures import ClaimVerdict
from bench.machine import Machine
from bench.plot import available, plot_api

MACHINE = Machine(2, "some CPU", "6.1", "3.11.7", 0.1, {})
TINY = ApiEffort(rounds=1, seconds=0.05, listed_pods=200, held_pods=200, events=400, watch_rounds=1)
KINDS = ("join", "list", "page", "table", "table page", "node")


def watches(seconds: float | None = 1.0, missing: int = 0) -> tuple[Publication, ...]:
    return (
        Publication(EVERYONE, 40_000, seconds, missing),
        Publication(PLAIN, 40_000, 0.5, 0),
        Publication(PLAIN_BY_NODE, 4_000, 0.2, 0),
        Publication(BY_NODE, 4_000, 0.4, 0),
    )


def measured(
    join: Sequence[float] = (0.1, 0.1),
    over_tls: Sequence[float] = (0.2, 0.3),
    seen: tuple[Publication, ...] | None = None,
    pauses: Sequence[float] = (0.001, 0.002),
) -> Api:
    inside = dict.fromkeys(KINDS, (0.15, 0.15)) | {"join": tuple(join)}
    return Api(
        MACHINE,
        TINY,
        (Creates(340, 16, {ECHO: (4000.0,), MEMORY: (2000.0,), STATE: (1500.0,)}),),
        Lists(200, 7000, inside, tuple(over_tls), (0.2, 0.2)),
        watches() if seen is None else seen,
        Memory(tuple(pauses), 160.0),
        Memory((0.0,), 50.0),
        Memory((0.7,), 380.0),
    )


@pytest.mark.parametrize(
    ("result", "missed"),
    [
        (measured(), []),
        (measured(join=(0.05, 0.07)), ["list of 200 pods / plain join of the stored bytes"]),
        (measured(over_tls=(0.5, 0.6)), ["the same over TLS / the join over TLS"]),
        (measured(seen=watches(seconds=1.5)), ["deliveries/s to 10 watchers"]),
        (
            measured(seen=watches(seconds=None, missing=1)),
            ["deliveries/s to 10 watchers", "events lost by any watcher"],
        ),
        (measured(pauses=(0.03, 0.04)), ["full garbage collection, ms"]),
    ],
    ids=["all met", "list", "list over TLS", "slow", "some never came", "pause"],
)
def test_targets(result: Api, missed: list[str]) -> None:
    """Twice a join, 30,000 deliveries a second without any loss, 20 ms."""
    assert [target.name for target in targets(result) if target.verdict is not ClaimVerdict.MET] == missed


def test_one_lossy_watch_is_enough() -> None:
    """A median of losses would hide it."""
    result = measured(seen=(*watches(), *watches(), *watches(missing=3)))
    (found,) = [target for target in targets(result) if target.name == "events lost by any watcher"]
    assert found.verdict is ClaimVerdict.MISSED


@pytest.mark.parametrize(
    ("received", "cut_short", "digests", "expected"),
    [
        (4, 0, ["a", "b"], 0),
        (3, 0, ["a", "x"], 1),
        (6, 0, ["a", "x"], 2),
        (3, 1, ["a", "x"], 1),
        (4, 0, ["b", "a"], 2),
        (4, 0, ["x", "b"], 1),
    ],
    ids=["all came", "one missing", "too many", "one broken", "at the wrong watchers", "in another order"],
)
def test_lost(received: int, cut_short: int, digests: list[str], expected: int) -> None:
    """Nothing is lost only where each watcher got exactly what was sent to it."""
    taken: dict[str, Any] = {"received": received, "cut_short": cut_short, "digests": digests}
    assert lost(["a", "b"], taken, 4) == expected


def fed(text: bytes, piece: int, capacity_bytes: int) -> Events:
    events = Events(capacity_bytes)
    for start in range(0, len(text), piece):
        part = text[start : start + piece]
        events.room()[: len(part)] = part
        events.feed(len(part))
    return events


@pytest.mark.parametrize("piece", [1, 7, 100, 1000])
def test_events_are_found_in_any_pieces(piece: int) -> None:
    """Across the ends of what arrives at once, with HTTP's head and chunk sizes in between."""
    line = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"%d"}}}\n'
    text = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n40\r\n" + line % 5 + b"\r\n80\r\n" + line % 6 + line % 7 + b"\r\n"
    events = fed(text, piece, 1100)
    assert (events.revisions, events.cut_short, events.head) == ([5, 6, 7], 0, "HTTP/1.1 200 OK")


@pytest.mark.parametrize(
    "line",
    [b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"5"\n', b'{"type":"ADDED","object":{}}\n'],
    ids=["its end is missing", "no revision"],
)
def test_broken_events_are_counted(line: bytes) -> None:
    """They are no deliveries."""
    events = fed(line, 10, 1100)
    assert (events.revisions, events.cut_short) == ([], 1)


def test_digests_know_the_order() -> None:
    assert digest([1, 2]) == digest([1, 2])
    assert len({digest([1, 2]), digest([2, 1]), digest([12]), digest([])}) == 4


@pytest.mark.parametrize("size", [SMALL_BYTES, MIDDLE_BYTES, LARGE_BYTES])
def test_pods_are_as_large_as_asked(size: int) -> None:
    """Every body has its own name and the same length."""
    of = template(size)
    assert size <= len(of) <= size + 40
    pods = [msgspec.json.decode(body(of, number)) for number in (1, 2)]
    assert [pod["metadata"]["name"] for pod in pods] == [named(1), named(2)]
    assert len(body(of, 1)) == len(of) == len(body(of, 99_999_999))


@pytest.mark.slow
def test_a_small_run(tmp_path: Path) -> None:
    """Every part works: nothing is lost, every figure is there, and tables, file and picture are made of them."""
    result, text = measure_api(TINY), io.StringIO()
    assert [watch.lost for watch in result.watches] == [0, 0, 0, 0]
    assert all(rate > 0 for each in result.creates for rates in each.per_second.values() for rate in rates)
    assert 6_500 < result.lists.pod_bytes < 7_500
    show(result, Console(file=text, width=120))
    assert "100 watchers by node" in text.getvalue()
    save(result, tmp_path / "api.json")
    assert '"targets"' in (tmp_path / "api.json").read_text()
    if available():
        plot_api(result, tmp_path / "api.svg")
        assert (tmp_path / "api.svg").exists()

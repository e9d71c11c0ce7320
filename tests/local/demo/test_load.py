"""The load generator: the same arrivals for the same seed, latency from the moment due, honest percentiles."""

from __future__ import annotations

import asyncio
import time

import pytest

from local.demo.load import Generator, LoadRequest, Segment, percentile, schedule

SEGMENTS = (Segment(10, 100), Segment(10, 300))


def test_the_schedule_is_the_same_for_the_same_seed_only() -> None:
    """Every phase meets the same requests at the same moments."""
    assert schedule(SEGMENTS, 1) == schedule(SEGMENTS, 1)
    assert schedule(SEGMENTS, 1) != schedule(SEGMENTS, 2)


def test_the_schedule_has_the_asked_rates_and_stays_within_its_segments() -> None:
    """About 1000 arrivals, then about 3000, in order, none after the end."""
    due = schedule(SEGMENTS, 7)
    base = [at for at in due if at < 10]
    assert due == sorted(due)
    assert due[-1] < 20
    assert 850 < len(base) < 1150
    assert 2750 < len(due) - len(base) < 3250


@pytest.mark.parametrize(
    ("case", "values", "pct", "expected"),
    [
        ("none", [], 50, None),
        ("one", [5.0], 99, 5.0),
        ("median of four", [4.0, 1.0, 3.0, 2.0], 50, 2.0),
        ("p99 of a hundred", [float(n) for n in range(1, 101)], 99, 99.0),
        ("p99 of ninety-nine", [float(n) for n in range(1, 100)], 99, 99.0),
        ("p100", [1.0, 2.0], 100, 2.0),
        ("p0", [1.0, 2.0], 0, 1.0),
    ],
)
def test_percentile(case: str, values: list[float], pct: float, expected: float | None) -> None:
    """Nearest rank: a value that was measured, never one in between."""
    assert percentile(values, pct) == expected


async def one_at_a_time(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, lock: asyncio.Lock) -> None:
    """A service that needs 0.1 s a request and serves one at a time."""
    try:
        while True:
            await reader.readuntil(b"\r\n\r\n")
            async with lock:
                await asyncio.sleep(0.1)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


def test_a_slow_service_does_not_slow_the_arrivals_down() -> None:
    """Four requests due at once at a service of 0.1 s each: the last has waited for the three before it."""

    async def story() -> list[LoadRequest]:
        lock = asyncio.Lock()
        server = await asyncio.start_server(lambda r, w: one_at_a_time(r, w, lock), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await Generator(port).run([0.0, 0.0, 0.0, 0.0], time.monotonic() + 0.1)

    latencies = sorted(request.latency_seconds or 0.0 for request in asyncio.run(story()))
    assert len(latencies) == 4
    assert latencies[0] >= 0.1
    assert latencies[3] >= 0.4


def test_a_request_nobody_answers_is_counted_and_has_no_latency() -> None:
    """A refused connection is a result, not an end."""

    async def story() -> list[LoadRequest]:
        return await Generator(1).run([0.0, 0.01], time.monotonic())

    assert [request.latency_seconds for request in asyncio.run(story())] == [None, None]

"""An open-loop load generator: requests leave by the clock and not when the last answer came.

Latency counts from the moment a request was due, so a service that stalls cannot hide it by slowing its clients
down (coordinated omission). Runs as a process of its own: `python -m local.demo.load`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

ANSWER_BOUND_SECONDS = 5.0
_REQUEST = b"GET / HTTP/1.1\r\nHost: web\r\n\r\n"


class Segment(msgspec.Struct, frozen=True):
    """A stretch of constant load: `per_second` requests on average."""

    seconds: float
    per_second: float


class LoadRequest(msgspec.Struct, frozen=True):
    """One request: when it was due, in seconds from the start, and how long it took; None where no answer came."""

    due_seconds: float
    latency_seconds: float | None


class LoadResult(msgspec.Struct, frozen=True):
    """What the generator writes; `priority` says how it was scheduled itself."""

    priority: str
    requests: list[LoadRequest]


def schedule(segments: Sequence[Segment], seed: int) -> list[float]:
    """Poisson arrivals, in seconds from the start: the same for the same seed, on every machine."""
    source = random.Random(seed)
    due: list[float] = []
    begin = 0.0
    for segment in segments:
        at = begin + source.expovariate(segment.per_second)
        while at < begin + segment.seconds:
            due.append(at)
            at += source.expovariate(segment.per_second)
        begin += segment.seconds
    return due


def percentile(values: Iterable[float], pct: float) -> float | None:
    """The nearest-rank percentile; None without values."""
    ranked = sorted(values)
    if not ranked:
        return None
    rank = max(1, -(-len(ranked) * pct // 100))
    return ranked[int(rank) - 1]


class Generator:
    """Sends to 127.0.0.1:`port` over connections that are kept and reused, as many as are needed at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._requests: list[LoadRequest] = []

    async def run(self, due: Sequence[float], begin: float) -> list[LoadRequest]:
        """Send a request at each of `due`, seconds after `begin` of the monotonic clock; returns them all."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as tasks:
            for at in due:
                if (wait := begin + at - loop.time()) > 0:
                    await asyncio.sleep(wait)
                tasks.create_task(self._send(begin, at))
        for _, writer in self._idle:
            writer.close()
        return sorted(self._requests, key=lambda request: request.due_seconds)

    async def _send(self, begin: float, at: float) -> None:
        latency = None
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            await asyncio.wait_for(self._exchange(), ANSWER_BOUND_SECONDS)
            latency = asyncio.get_running_loop().time() - begin - at
        self._requests.append(LoadRequest(at, latency))

    async def _exchange(self) -> None:
        if self._idle:
            reader, writer = self._idle.pop()
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(_REQUEST)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_content_length(head))
        except BaseException:
            writer.close()
            raise
        self._idle.append((reader, writer))


def raise_priority() -> str:
    """Ahead of what is measured, so that a late generator does not look like a slow service; returns how."""
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return "SCHED_FIFO"
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        return "nice -10"
    return "normal"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m local.demo.load", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--segment", action="append", required=True, metavar="SECONDS:PER_SECOND")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--begin", type=float, required=True, help="monotonic clock, seconds")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    segments = [Segment(*map(float, text.split(":"))) for text in options.segment]
    priority = raise_priority()
    # The event loop's clock is the monotonic clock, which all processes of the machine share.
    requests = asyncio.run(Generator(options.port).run(schedule(segments, options.seed), options.begin))
    partial = options.out.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(LoadResult(priority, requests)))
    partial.replace(options.out)
    return 0


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise ValueError("the answer has no Content-Length")


if __name__ == "__main__":
    sys.exit(main())

"""One reader in a process of its own, asked over pipes, so that none works in the memory another has made.

`python -m bench.agent.reader_process NAME PLAN_FILE [LIBRARY]` answers each request line with one line; the Go program
speaks the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.agent.files import ReadPlan
from bench.agent.readers import FloorReader, PlainReader, Reader, Totals


class ReadRequest(msgspec.Struct, frozen=True):
    """Read `passes` times, one each `interval_seconds` (0: at once)."""

    passes: int
    interval_seconds: float = 0.0


class ReadAnswer(msgspec.Struct, frozen=True):
    """CPU time of the process over all passes, user and system; totals of the last pass."""

    cpu_ns: int
    totals: Totals


def serve(reader: Reader, wanted: ReadRequest) -> ReadAnswer:
    """Waiting between passes is counted too: a real agent has to wake up as well."""
    before, due = time.process_time_ns(), time.monotonic()
    for _ in range(wanted.passes):
        time.sleep(max(due - time.monotonic(), 0))
        due += wanted.interval_seconds
        reader.read()
    return ReadAnswer(time.process_time_ns() - before, reader.totals())


def make_reader(name: str, library: str) -> Reader:
    if name == "plain":
        return PlainReader()
    if name == "floor":
        return FloorReader(Path(library))
    from bench.agent.ours import OurReader

    return OurReader(as_the_tick=name == "tick")


def main(arguments: Sequence[str]) -> int:
    name, plan_file, *library = arguments
    reader = make_reader(name, *library or [""])
    reader.open(msgspec.json.decode(Path(plan_file).read_bytes(), type=ReadPlan))
    print('{"ready":true}', flush=True)
    for line in sys.stdin:
        answer = serve(reader, msgspec.json.decode(line, type=ReadRequest))
        print(msgspec.json.encode(answer).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

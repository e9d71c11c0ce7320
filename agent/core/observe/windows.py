"""One consumer's use over time, in fixed memory: sums that only grow, and marks of what they were a while ago.

    average over a window = (sum now - sum at the window's start) / (covered time now - covered time then)

Time is covered when two readings give a rate that is possible. A counter that went backwards (reset, re-created cgroup,
wraparound), a rate above what the CPUs can do and a gap of more than ten ticks give no rate and cover nothing.

A consumer keeps at most 2 x 14 marks of about 130 bytes and a minute of samples of 12 bytes: 5.5 KB at the most. A
container keeps the live window alone: 2.4 KB.
"""

from __future__ import annotations

import struct

import msgspec

from agent.core.observe.observation import CgroupSample, Missing
from agent.core.observe.series import rank
from model.report import Usage

_STEPS = 12
"""Marks in a window. A few more than its tenths, so that a tick that comes a little early still leaves one."""
_LONGEST_INTERVALS = 10
"""Ticks that may be missed before the rate over the gap says nothing about now."""
_STILL_INTERVALS = 9
"""Ticks for which the counter of a container may stand still without being read: half a round of slow turns and some
that came late."""
_HELD_PASSES = 10
"""For so many passes without a rate the last averages stand."""
_MARGIN_RATIO = 0.1
"""Counter and clock are not read at the same instant, so a full node may seem to do more than it can."""
_WRAP = (1 << 64) - 1
"""Sums wrap as the kernel's counters do; a window's difference stays far below (5 TB for an hour)."""
_MINUTE = struct.Struct("<IQ")
_MINUTE_BYTES = 60 * _MINUTE.size


class Windows(msgspec.Struct, frozen=True):
    """Spans in seconds, and what counts as memory.

    `tick_seconds` is the usual time between two passes, `series_seconds` how far back statistics of node and system
    reach. `page_cache` counts the page cache as used (Koordinator nodeMemoryCollectPolicy usageWithPageCache).
    """

    live_seconds: float = 10.0
    aggregate_seconds: float = 300.0
    tick_seconds: float = 1.0
    series_seconds: float = 1800.0
    page_cache: bool = False


class Averages(msgspec.Struct, frozen=True, gc=False):
    """One consumer: the newest rate, and its averages over the live and the aggregate window."""

    last: Usage = Usage()
    live: Usage = Usage()
    aggregate: Usage = Usage()

    @property
    def cautious(self) -> Usage:
        """The larger of live and aggregate average: shrinking follows the load, growing follows the window."""
        return Usage(
            max(self.live.cpu_millis, self.aggregate.cpu_millis),
            max(self.live.memory_bytes, self.aggregate.memory_bytes),
        )


class Rate(msgspec.Struct, frozen=True, gc=False):
    """What was used over one interval; finer than Usage, so that many small consumers add up."""

    micros: int
    memory_bytes: int


class Mark(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Sums as they were at `at_ms`: CPU in micro-CPU x ms, memory in bytes x ms, and the ms they cover."""

    at_ms: int
    cpu: int = 0
    memory: int = 0
    covered_ms: int = 0

    def mean_since(self, start: Mark) -> Usage:
        """Time-weighted mean of what was covered after `start`, which must lie before."""
        ms = self.covered_ms - start.covered_ms
        return Usage(
            (((self.cpu - start.cpu) & _WRAP) + ms * 500) // (ms * 1000),
            (((self.memory - start.memory) & _WRAP) + ms // 2) // ms,
        )


class Track(msgspec.Struct, frozen=True, gc=False):
    """A consumer between two passes: its counter when last read, its sums and marks, its averages until the next.

    `silent_passes` counts passes since the last rate. `minute` are packed samples of the last 60 s (milli-CPU, bytes).
    """

    at_seconds: float
    cpu_ns: int
    sums: Mark
    live: tuple[Mark, ...]
    aggregate: tuple[Mark, ...] = ()
    minute: bytes = b""
    averages: Averages | None = None
    silent_passes: int = 0

    @property
    def measured(self) -> Averages | None:
        """None before the first rate, and when there was none for too long."""
        return self.averages if self.silent_passes <= _HELD_PASSES else None

    @property
    def live_covered_seconds(self) -> float:
        return (self.sums.covered_ms - self.live[0].covered_ms) / 1000

    @property
    def minute_peak(self) -> Usage | None:
        """90th percentile of the last minute, CPU and memory each on its own."""
        samples = list(_MINUTE.iter_unpack(self.minute))
        if not samples:
            return None
        index = rank(len(samples), 0.9)
        cpu, memory = (sorted(column)[index] for column in zip(*samples, strict=True))
        return Usage(cpu, memory)


class Span(msgspec.Struct, frozen=True, gc=False):
    """A window that ends now: where it starts, and how far apart its marks are."""

    start_ms: int
    step_ms: int

    @classmethod
    def of(cls, seconds: float, now_ms: int) -> Span:
        ms = round(seconds * 1000)
        return cls(now_ms - ms, ms // _STEPS)


class Moment(msgspec.Struct, frozen=True):
    """What all consumers of one pass share: its time, and what a rate may be.

    Without `aggregate` a consumer keeps the live window alone, and no minute: its aggregate average is the live one. A
    counter that has stood still for less than `still_seconds` says nothing yet: it may not have been read.
    """

    at_seconds: float
    at_ms: int
    most_micros: float
    longest_seconds: float
    live: Span
    aggregate: Span | None
    page_cache: bool
    still_seconds: float = 0.0

    @classmethod
    def of(cls, at_seconds: float, cpus: int, windows: Windows) -> Moment:
        """The pass at monotonic `at_seconds` on a node of `cpus`."""
        at_ms = round(at_seconds * 1000)
        return cls(
            at_seconds=at_seconds,
            at_ms=at_ms,
            most_micros=cpus * 1_000_000 * (1 + _MARGIN_RATIO),
            longest_seconds=windows.tick_seconds * _LONGEST_INTERVALS,
            live=Span.of(windows.live_seconds, at_ms),
            aggregate=Span.of(windows.aggregate_seconds, at_ms),
            page_cache=windows.page_cache,
        )

    def of_containers(self) -> Moment:
        """The same for who keeps the live window alone and is not read in each pass."""
        still, longest = self.longest_seconds * _STILL_INTERVALS / _LONGEST_INTERVALS, 2 * self.longest_seconds
        return msgspec.structs.replace(self, aggregate=None, still_seconds=still, longest_seconds=longest)


def read(track: Track | None, sample: CgroupSample | Missing, now: Moment) -> Track | None:
    """The track after one more reading of its counter; None as long as there was no reading at all."""
    if isinstance(sample, Missing):
        return track and msgspec.structs.replace(track, silent_passes=track.silent_passes + 1)
    if track is None:
        return begun(now, sample.cpu_ns)
    elapsed, grown_ns = now.at_seconds - track.at_seconds, sample.cpu_ns - track.cpu_ns
    if not grown_ns and 0 <= elapsed < now.still_seconds:
        return track
    if now.at_ms <= track.sums.at_ms or elapsed > now.longest_seconds or grown_ns < 0:
        return unrated(track, now, sample.cpu_ns)
    micros = round(grown_ns / elapsed / 1000)
    if micros > now.most_micros:
        return unrated(track, now, sample.cpu_ns)
    memory = sample.memory_bytes + sample.page_cache_bytes if now.page_cache else sample.memory_bytes
    return covered(track, now, sample.cpu_ns, micros, memory)


def begun(now: Moment, cpu_ns: int = 0) -> Track:
    """A track that knows where it starts and nothing else."""
    start = Mark(now.at_ms)
    return Track(now.at_seconds, cpu_ns, start, (start,), (start,) if now.aggregate else ())


def unrated(track: Track, now: Moment, cpu_ns: int = 0) -> Track:
    """The track after a pass without a rate: the counter starts again, the rest stays."""
    sums = Mark(now.at_ms, track.sums.cpu, track.sums.memory, track.sums.covered_ms)
    # A gap parts what was seen before from what comes.
    minute = track.minute if now.at_seconds - track.at_seconds <= now.longest_seconds else b""
    return Track(
        now.at_seconds, cpu_ns, sums, track.live, track.aggregate, minute, track.averages, track.silent_passes + 1
    )


def covered(track: Track, now: Moment, cpu_ns: int, micros: int, memory: int) -> Track:
    """The track after it used `micros` micro-CPU and `memory` bytes since its last reading."""
    before = track.sums
    ms = now.at_ms - before.at_ms
    covered_ms = before.covered_ms + ms
    sums = Mark(now.at_ms, (before.cpu + micros * ms) & _WRAP, (before.memory + memory * ms) & _WRAP, covered_ms)
    last = Usage((micros + 500) // 1000, memory)
    live = _slid(track.live, before, sums, now.live)
    recent = sums.mean_since(live[0])
    if now.aggregate is None:
        return Track(now.at_seconds, cpu_ns, sums, live, averages=Averages(last, recent, recent))
    aggregate = _slid(track.aggregate, before, sums, now.aggregate)
    minute = track.minute
    if covered_ms // 1000 != before.covered_ms // 1000:
        minute = minute[-_MINUTE_BYTES + _MINUTE.size :] + _MINUTE.pack(last.cpu_millis, memory)
    averages = Averages(last, recent, sums.mean_since(aggregate[0]))
    return Track(now.at_seconds, cpu_ns, sums, live, aggregate, minute, averages)


def rate_since(since_ms: int, before: Track | None, after: Track | None) -> Rate | None:
    """What a consumer used between the pass at `since_ms` and its newest; None where that is not what it covers."""
    if before is None or after is None or after.silent_passes or before.sums.at_ms != since_ms:
        return None
    old, new = before.sums, after.sums
    ms = new.covered_ms - old.covered_ms
    return Rate(((new.cpu - old.cpu) & _WRAP) // ms, ((new.memory - old.memory) & _WRAP) // ms)


def _slid(marks: tuple[Mark, ...], before: Mark, sums: Mark, span: Span) -> tuple[Mark, ...]:
    """The window's marks: the first lies at or just before its start. After a gap as long as itself it starts again."""
    newest_ms = marks[-1].at_ms
    if newest_ms <= span.start_ms:
        return (before, sums)
    first = 0
    while first + 1 < len(marks) and marks[first + 1].at_ms <= span.start_ms:
        first += 1
    if sums.at_ms - newest_ms >= span.step_ms:
        return (*marks[first:], sums)
    return marks[first:] if first else marks

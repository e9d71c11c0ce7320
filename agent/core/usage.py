"""Usage: rates from two samples, and their averages over windows in fixed memory.

A window is a short tuple of buckets (total, weight in seconds); its average is time-weighted, so that an early or late
tick counts for what it covers. A counter that went backwards (reset, re-created cgroup) yields no rate for that pass.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from agent.core.observation import CgroupSample, Missing, NodeSample, Observation
from model.report import Usage

_BUCKETS = 10
_FULL_RATIO = 0.9
_SHORTEST_INTERVAL_SECONDS = 0.5
"""A rate over less than this is dominated by the 10 ms ticks of /proc/stat (reference: kernel measurements)."""


class Bucket(msgspec.Struct, frozen=True, gc=False):
    """What was seen from `start` on: sum of value x seconds, and the seconds."""

    start: float
    cpu: float
    memory: float
    seconds: float


class Window(msgspec.Struct, frozen=True):
    """At most `_BUCKETS` + 1 buckets that cover `span_seconds`."""

    span_seconds: float
    buckets: tuple[Bucket, ...] = ()

    def push(self, now: float, usage: Usage, seconds: float) -> Window:
        """The window with `usage` as it was over the last `seconds`."""
        kept = tuple(b for b in self.buckets if b.start > now - self.span_seconds)
        if seconds > self.span_seconds / 2:
            # After a gap the window starts anew: one long quiet stretch must not outweigh what comes now.
            kept, seconds = (), self.span_seconds / _BUCKETS
        cpu, memory = usage.cpu_millis * seconds, usage.memory_bytes * seconds
        if kept and now - kept[-1].start < self.span_seconds / _BUCKETS:
            last = kept[-1]
            grown = Bucket(last.start, last.cpu + cpu, last.memory + memory, last.seconds + seconds)
            return Window(self.span_seconds, (*kept[:-1], grown))
        return Window(self.span_seconds, (*kept, Bucket(now, cpu, memory, seconds)))

    @property
    def average(self) -> Usage:
        """Time-weighted mean over what is kept; zero when empty."""
        seconds = sum(b.seconds for b in self.buckets)
        if seconds <= 0:
            return Usage()
        return Usage(
            round(sum(b.cpu for b in self.buckets) / seconds), round(sum(b.memory for b in self.buckets) / seconds)
        )

    @property
    def covered_seconds(self) -> float:
        return sum(b.seconds for b in self.buckets)


class Averages(msgspec.Struct, frozen=True):
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


class Track(msgspec.Struct, frozen=True):
    """A consumer's state between passes: its counter when it was last read, and its windows."""

    monotonic_seconds: float
    cpu_ns: int
    last: Usage | None
    live: Window
    aggregate: Window

    @property
    def averages(self) -> Averages | None:
        return Averages(self.last, self.live.average, self.aggregate.average) if self.last else None


class UsageState(msgspec.Struct, frozen=True):
    """What must be remembered between two passes; empty at the start."""

    monotonic_seconds: float = 0.0
    tracks: Mapping[str, Track] = {}
    throttled: Mapping[str, tuple[int, int]] = {}


class NodeUsage(msgspec.Struct, frozen=True):
    """Usage of the node and its parts.

    `online` is every pod cgroup outside besteffort, `system` what the node uses outside all pods, `unlisted_system`
    what it uses outside the listed pods (Koordinator's system usage). `pods` lacks pods that were not measured twice.
    `live_seconds` is how much of the live window, `live_span_seconds` long, is filled.
    """

    at_seconds: float
    node: Averages
    system: Averages
    unlisted_system: Averages
    online: Averages
    best_effort: Averages
    pods: Mapping[str, Averages]
    live_seconds: float
    live_span_seconds: float
    throttled_ratio: Mapping[str, float] = {}

    @property
    def live_window_full(self) -> bool:
        """Enough was seen to give more than before; the newest tick need not be exact."""
        return self.live_seconds >= self.live_span_seconds * _FULL_RATIO


class Windows(msgspec.Struct, frozen=True):
    """Spans of the two windows in seconds."""

    live_seconds: float = 10.0
    aggregate_seconds: float = 300.0


_NODE, _KUBEPODS, _BEST_EFFORT = "node", "kubepods", "besteffort"
_SYSTEM, _UNLISTED, _ONLINE = "system", "unlisted", "online"


def measure(state: UsageState, seen: Observation, windows: Windows) -> tuple[UsageState, NodeUsage | None]:
    """Rates and averages after one more pass; None until node and pod roots were read twice.

    A pass too soon after the last one changes nothing: its time is covered by the next.
    """
    now = seen.monotonic_seconds
    if state.tracks and 0 <= now - state.monotonic_seconds < _SHORTEST_INTERVAL_SECONDS:
        return state, _summary(state, seen)
    expected = {_NODE, _KUBEPODS, _BEST_EFFORT, _SYSTEM, _UNLISTED, _ONLINE, *seen.pods}
    tracks = {key: track for key, track in state.tracks.items() if key in expected}
    rates: dict[str, Usage | None] = {}
    for key, (cpu_ns, memory_bytes) in _samples(seen).items():
        rates[key] = _rate(tracks.get(key), now, cpu_ns, memory_bytes)
        tracks[key] = _advance(tracks.get(key), now, cpu_ns, rates[key], windows)
    for key, rate in _derived(rates, seen).items():
        tracks[key] = _advance(tracks.get(key), now, 0, rate, windows)
    after = UsageState(now, tracks, _throttle_counters(seen))
    return after, _summary(after, seen, _throttled_ratios(state, seen))


def _samples(seen: Observation) -> dict[str, tuple[int, int]]:
    """Readable consumers: key → (CPU ns, memory bytes)."""
    samples = {}
    if isinstance(seen.node_sample, NodeSample):
        samples[_NODE] = (seen.node_sample.cpu_ns, seen.node_sample.memory_used_bytes)
    for key, sample in ((_KUBEPODS, seen.kubepods), (_BEST_EFFORT, seen.best_effort), *seen.pods.items()):
        if isinstance(sample, CgroupSample):
            samples[key] = (sample.cpu_ns, sample.memory_bytes)
    return samples


def _rate(track: Track | None, now: float, cpu_ns: int, memory_bytes: int) -> Usage | None:
    if track is None or now <= track.monotonic_seconds or cpu_ns < track.cpu_ns:
        return None
    return Usage(round((cpu_ns - track.cpu_ns) / (now - track.monotonic_seconds) / 1_000_000), memory_bytes)


def _advance(track: Track | None, now: float, cpu_ns: int, rate: Usage | None, windows: Windows) -> Track:
    if track is None:
        return Track(now, cpu_ns, rate, Window(windows.live_seconds), Window(windows.aggregate_seconds))
    if rate is None:
        return Track(now, cpu_ns, track.last, track.live, track.aggregate)
    seconds = now - track.monotonic_seconds
    live, aggregate = track.live.push(now, rate, seconds), track.aggregate.push(now, rate, seconds)
    return Track(now, cpu_ns, rate, live, aggregate)


def _derived(rates: Mapping[str, Usage | None], seen: Observation) -> dict[str, Usage | None]:
    """Differences of rates taken at one moment; none where a part is missing."""
    node, kubepods, best_effort = (rates.get(key) for key in (_NODE, _KUBEPODS, _BEST_EFFORT))
    measured = [rate for key in seen.pods if (rate := rates.get(key)) is not None]
    listed = Usage(sum(r.cpu_millis for r in measured), sum(r.memory_bytes for r in measured))
    return {
        _SYSTEM: _minus(node, kubepods),
        _UNLISTED: _minus(node, listed),
        _ONLINE: _minus(kubepods, best_effort),
    }


def _minus(whole: Usage | None, part: Usage | None) -> Usage | None:
    if whole is None or part is None:
        return None
    return Usage(max(whole.cpu_millis - part.cpu_millis, 0), max(whole.memory_bytes - part.memory_bytes, 0))


def _throttle_counters(seen: Observation) -> dict[str, tuple[int, int]]:
    return {
        uid: (sample.throttling.periods, sample.throttling.throttled)
        for uid, sample in seen.pods.items()
        if isinstance(sample, CgroupSample) and sample.throttling
    }


def _throttled_ratios(state: UsageState, seen: Observation) -> dict[str, float]:
    ratios = {}
    for uid, (periods, throttled) in _throttle_counters(seen).items():
        before = state.throttled.get(uid)
        if before and periods > before[0]:
            ratios[uid] = max(throttled - before[1], 0) / (periods - before[0])
    return ratios


def _summary(state: UsageState, seen: Observation, ratios: Mapping[str, float] | None = None) -> NodeUsage | None:
    needed = {}
    for key in (_NODE, _SYSTEM, _UNLISTED, _ONLINE, _BEST_EFFORT):
        averages = state.tracks[key].averages if key in state.tracks else None
        if averages is None:
            return None
        needed[key] = averages
    if any(isinstance(part, Missing) for part in (seen.node_sample, seen.kubepods, seen.best_effort)):
        return None
    pods = {uid: averages for uid in seen.pods if uid in state.tracks and (averages := state.tracks[uid].averages)}
    return NodeUsage(
        at_seconds=seen.at_seconds,
        node=needed[_NODE],
        system=needed[_SYSTEM],
        unlisted_system=needed[_UNLISTED],
        online=needed[_ONLINE],
        best_effort=needed[_BEST_EFFORT],
        pods=pods,
        live_seconds=state.tracks[_ONLINE].live.covered_seconds,
        live_span_seconds=state.tracks[_ONLINE].live.span_seconds,
        throttled_ratio=ratios or {},
    )

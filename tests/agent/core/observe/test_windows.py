"""Averages cover what they say, in fixed memory, whatever the counters and the clock do."""

from __future__ import annotations

import sys
from itertools import accumulate
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.observation import Absence, CgroupSample, Missing
from agent.core.observe.windows import Averages, Moment, Track, Windows, rate_since, read
from model.report import Usage

WINDOWS = Windows(live_seconds=10.0, aggregate_seconds=300.0)
SECOND = 1_000_000_000
CPUS = 4
MOST_MILLIS = CPUS * 1100 + 1
GONE = Missing("/x", Absence.GONE)


def step(
    track: Track | None, t: float, cpu: float | None, memory: int = 0, windows: Windows = WINDOWS, **sample: Any
) -> Track | None:
    """One reading at `t`: `cpu` seconds on the counter, None for no reading."""
    reading = GONE if cpu is None else CgroupSample(round(cpu * SECOND), memory, **sample)
    return read(track, reading, Moment.of(t, CPUS, windows))


def run(readings: list[tuple[float, float | None]], windows: Windows = WINDOWS) -> Track:
    track = None
    for t, cpu in readings:
        track = step(track, t, cpu, windows=windows)
    assert track is not None
    return track


def steady(seconds: int, cpus: float, t: float = 0, cpu: float = 0) -> list[tuple[float, float | None]]:
    """Readings each second at a constant rate, the one at `t` included."""
    return [(t + s, cpu + s * cpus) for s in range(seconds + 1)]


def last_millis(track: Track) -> int | None:
    return None if track.measured is None else track.measured.last.cpu_millis


@pytest.mark.parametrize(
    ("readings", "last"),
    [
        pytest.param([(0, 5)], None, id="one reading says nothing"),
        pytest.param([(0, 5), (2, 8)], 1500, id="3 CPU s in 2 s"),
        pytest.param([(0, 0), (1, 0.000_499)], 0, id="below half a milli-CPU"),
        pytest.param([(0, 0), (1, 0.000_5)], 1, id="half a milli-CPU is one"),
        pytest.param([(0, 10), (1, 11), (2, 0.1)], 1000, id="counter went back: the last rate stands"),
        pytest.param([(0, 10), (1, 11), (2, 0.1), (3, 0.4)], 300, id="and goes on from the new counter"),
        pytest.param([(0, 0), (1, 1), (2, 5.5)], 1000, id="4.5 CPUs of 4 is refused as 1.1 x 4 = 4.4"),
        pytest.param([(0, 0), (1, 1), (2, 5.3)], 4300, id="4.3 CPUs of 4 is jitter of the clock"),
        pytest.param([(0, 0), (1, 1), (2, 2**63 / SECOND)], 1000, id="a counter near its end is refused"),
        pytest.param([(0, 0), (1, 1), (1, 2)], 1000, id="the clock stood still"),
        pytest.param([(0, 0), (1, 1), (0.5, 2)], 1000, id="the clock went back"),
        pytest.param([(0, 0), (1, 1), (11, 2)], 100, id="ten intervals are a rate still"),
        pytest.param([(0, 0), (1, 1), (11.5, 2)], 1000, id="more than ten say nothing about now"),
        pytest.param([(0, 0), (1, 1), (2, None)], 1000, id="no reading: the last rate stands"),
        pytest.param([(0, 0), (1, 1), (2, None), (3, 2)], 500, id="the next rate covers the missed pass"),
    ],
)
def test_rate(readings: list[tuple[float, float | None]], last: int | None) -> None:
    """A rate comes from two readings that make sense together, or not at all."""
    assert last_millis(run(readings)) == last


def test_slow_ticks_are_no_gap() -> None:
    """At a tick of 3 s, 12 s are four intervals."""
    windows = msgspec.structs.replace(WINDOWS, tick_seconds=3.0)
    assert last_millis(run([(0, 0), (3, 3), (15, 9)], windows)) == 500


def test_silence_is_held_for_ten_passes() -> None:
    """A consumer that cannot be read any more is not measured after ten passes, and at once when it is back."""
    passes: list[tuple[float, float | None]] = [(0, 0), (1, 1)]
    passes += [(2 + n, None) for n in range(10)]
    assert run(passes).measured is not None
    passes.append((12, None))
    assert run(passes).measured is None
    back = run([*passes, (13, 2), (14, 2.5)])
    assert last_millis(back) == 500


def test_averages_are_time_weighted() -> None:
    """2 s at 100 and 1 s at 400: (2 x 100 + 1 x 400) / 3 = 200."""
    track = run([(0, 0), (2, 0.2), (3, 0.6)])
    assert track.measured == Averages(Usage(400), Usage(200), Usage(200))
    assert track.live_covered_seconds == 3


def test_windows_forget() -> None:
    """400 s at 2 CPUs, then 20 s at 1: live has forgotten; the aggregate window, 300 to 325 s long, has not."""
    track = run(steady(400, 2.0) + steady(20, 1.0, 400, 800)[1:])
    averages = track.measured
    assert averages is not None
    assert averages.live.cpu_millis == 1000
    # (20 x 1 + 280 x 2) / 300 = 1.933; (20 x 1 + 305 x 2) / 325 = 1.938
    assert 1933 <= averages.aggregate.cpu_millis <= 1938
    assert averages.cautious.cpu_millis == averages.aggregate.cpu_millis


def test_a_window_covers_its_span() -> None:
    """Once enough was seen, an average covers the whole span and at most one mark more."""
    track = run(steady(700, 1.0))
    assert 10 <= track.live_covered_seconds <= 11
    assert 300 <= (track.sums.covered_ms - track.aggregate[0].covered_ms) / 1000 <= 326


def test_a_gap_is_not_covered() -> None:
    """Five minutes at 2, ten minutes unseen, eight busy seconds at 1.5: only what was seen after counts."""
    busy: list[tuple[float, float | None]] = [(900 + s, 620 + 1.5 * s) for s in range(9)]
    track = run([*steady(310, 2.0), *busy])
    assert track.measured == Averages(Usage(1500), Usage(1500), Usage(1500))
    assert track.live_covered_seconds == 8


def test_a_shorter_gap_leaves_the_aggregate_window() -> None:
    """A minute unseen: the live window starts again, the aggregate still knows the load before."""
    track = run([*steady(200, 2.0), (260, 400), (261, 400.5)])
    averages = track.measured
    assert averages is not None and averages.live.cpu_millis == 500
    # (200 x 2 + 1 x 0.5) / 201 = 1.9925
    assert averages.aggregate.cpu_millis == 1993


def test_one_pass_without_a_rate_is_not_covered() -> None:
    """3 s at 1 CPU, a reset, 3 s at 2: seven seconds passed, six are covered: (3 + 6) / 6 = 1.5."""
    track = run([*steady(3, 1.0), *steady(3, 2.0, 4)])
    assert track.measured is not None and track.measured.live.cpu_millis == 1500
    assert track.live_covered_seconds == 6


def test_page_cache_counts_when_asked_for() -> None:
    """Memory is anonymous memory, plus the page cache by policy."""
    for page_cache, expected in ((False, 100), (True, 130)):
        windows = msgspec.structs.replace(WINDOWS, page_cache=page_cache)
        track = step(None, 0, 0, 100, windows, page_cache_bytes=30)
        track = step(track, 1, 0, 100, windows, page_cache_bytes=30)
        assert track is not None and track.averages is not None
        assert track.averages.live.memory_bytes == expected


def test_small_consumers_add_up() -> None:
    """A rate is known finer than a milli-CPU: 0.0004 CPU of a thousand pods is 400m, not nothing."""
    first = step(None, 0, 0)
    second = step(first, 1, 0.0004)
    rate = rate_since(0, first, second)
    assert rate is not None and rate.micros == 400
    assert rate_since(500, first, second) is None


def test_a_byte_for_a_millisecond_counts() -> None:
    """Sums are exact."""
    track = step(step(None, 0, 0, 1), 0.001, 0, 1)
    assert track is not None and track.measured is not None
    assert track.measured.live == track.measured.aggregate == Usage(0, 1)


def test_sums_survive_their_wrap() -> None:
    """Sums wrap at 64 bits as counters do; averages do not notice, and every number fits a 64-bit format."""
    track, near = run([(0, 0), (1, 1)]), (1 << 64) - 5
    wrapped = msgspec.structs.replace(track.sums, cpu=near, memory=near)
    track = msgspec.structs.replace(track, sums=wrapped, live=(wrapped,), aggregate=(wrapped,))
    after = step(track, 2, 2, 1 << 40)
    assert after is not None and after.measured is not None
    assert after.measured.live == after.measured.aggregate == Usage(1000, 1 << 40)
    assert after.sums.cpu < 1 << 40
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(after), type=Track) == after


def test_minute_peak() -> None:
    """54th of the last 60 values: 60 x 0.9 - 1 = index 53. A minute at 1 CPU, then six seconds at 3: not seen yet."""
    quiet = run(steady(70, 1.0))
    assert quiet.minute_peak == Usage(1000)
    assert run(steady(70, 1.0) + steady(6, 3.0, 70, 70)[1:]).minute_peak == Usage(1000)
    assert run(steady(70, 1.0) + steady(7, 3.0, 70, 70)[1:]).minute_peak == Usage(3000)


def test_minute_peak_after_a_gap_and_before_a_rate() -> None:
    """What was seen before a gap is not this minute's, and no rate is no peak."""
    assert run([(0, 0)]).minute_peak is None
    assert run([*steady(70, 3.0), (200, 500), (201, 501)]).minute_peak == Usage(1000)


@pytest.mark.parametrize(
    ("reset_at", "expected"),
    [
        pytest.param(71, Usage(3000), id="a container that was started again"),
        pytest.param(80, Usage(3000), id="unseen for ten intervals, which are no gap"),
        pytest.param(80.5, None, id="unseen for longer"),
    ],
)
def test_a_reset_is_no_gap(reset_at: float, expected: Usage | None) -> None:
    """A pass without a rate adds nothing to the minute and takes nothing away; only a gap parts it from what comes."""
    before = steady(70, 3.0)
    track = run([*before, (reset_at, 0.5)])
    assert track.minute_peak == expected
    assert track.minute == (run(before).minute if expected else b"")


def test_after_a_gap_the_minute_fills_again() -> None:
    """Each second after it counts, none before it, for the peak and for what the peak is judged by."""
    after = [(200.0, 500.0), *[(200.0 + s, 500.0 + 0.5 * s) for s in range(1, 21)]]
    track = run([*steady(70, 3.0), *after])
    assert track.minute_peak == Usage(500) and len(track.minute) == 20 * 12
    busy = run([*steady(70, 3.0), *after, *[(220.0 + s, 510.0 + 2.0 * s) for s in range(1, 61)]])
    assert busy.minute_peak == Usage(2000) and len(busy.minute) == 60 * 12


def test_ticks_between_seconds_do_not_shorten_the_minute() -> None:
    """At two passes a second the 60 samples still cover a minute: 55 s at 1 CPU and 5 s at 3 peak at 1."""
    early = [(n / 2, n / 2) for n in range(111)]
    late = [(55 + n / 2, 55 + 1.5 * n) for n in range(1, 11)]
    track = run([*early, *late])
    assert len(track.minute) == 60 * 12
    assert track.minute_peak == Usage(1000)


def size(value: Any, seen: set[int]) -> int:
    """Bytes of a value and all below it, each object once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    parts = getattr(value, "__struct_fields__", ())
    below = [getattr(value, name) for name in parts] if parts else list(value) if isinstance(value, tuple) else []
    return sys.getsizeof(value) + sum(size(part, seen) for part in below)


def test_bytes_of_a_consumer() -> None:
    """As the module says: 5.5 KB a pod, whatever the rhythm of the ticks."""
    for interval in (0.5, 0.84, 1.0, 3.0):
        windows = msgspec.structs.replace(WINDOWS, tick_seconds=interval)
        readings: list[tuple[float, float | None]] = [(interval * n, 1000.5 * n / 1000) for n in range(800)]
        track = run(readings, windows)
        assert len(track.live) <= 14 and len(track.aggregate) <= 14
        assert size(track, set()) <= 5_900


def test_a_container_is_not_read_in_each_pass() -> None:
    """Its counter says nothing while it stands still; nine seconds of that were idle. Others idle at once."""
    whole, short = [], []
    of_all = of_container = None
    for second in range(26):
        seconds_used = min(second // 5 * 5, 15)
        reading = CgroupSample(round(seconds_used * 0.5 * SECOND), 7)
        now = Moment.of(float(second), CPUS, WINDOWS)
        of_all, of_container = read(of_all, reading, now), read(of_container, reading, now.of_containers())
        assert of_all is not None and of_container is not None
        whole.append(last_millis(of_all))
        short.append(last_millis(of_container))
    assert short == [None] * 5 + [500] * 19 + [0] * 2
    assert whole[4:7] == [0, 2500, 0]


def test_a_container_is_measured_where_ticks_are_late() -> None:
    """Half a round of ticks of two seconds, and of three and a half; after twice as long it says nothing about now."""
    for seconds, expected in ((10.0, 500), (17.5, 500), (20.5, None)):
        first = read(None, CgroupSample(0, 7), Moment.of(0.0, CPUS, WINDOWS).of_containers())
        reading = CgroupSample(round(seconds * 0.5 * SECOND), 7)
        then = read(first, reading, Moment.of(seconds, CPUS, WINDOWS).of_containers())
        assert then is not None and last_millis(then) == expected


def test_a_short_track_keeps_the_live_window_alone() -> None:
    """A container: no aggregate window, no minute, half the bytes; its aggregate is the live average."""
    track = None
    for n in range(400):
        now = Moment.of(float(n), CPUS, WINDOWS).of_containers()
        track = read(track, CgroupSample(n * SECOND, 50), now)
    assert track is not None and track.aggregate == () and track.minute == b""
    assert track.measured == Averages(Usage(1000, 50), Usage(1000, 50), Usage(1000, 50))
    assert size(track, set()) <= 2_500


COUNTERS = st.lists(
    st.tuples(
        st.floats(0.5, 20),
        st.one_of(st.none(), st.integers(0, 3 * SECOND), st.integers(-(10**13), 10**13)),
        st.integers(0, 10**13),
    ),
    min_size=1,
    max_size=60,
)
"""Steps of the clock, growth of the counter (None: no reading; often absurd or backwards), memory."""


@given(COUNTERS)
def test_whatever_comes_rates_are_possible_and_averages_between_them(
    steps: list[tuple[float, int | None, int]],
) -> None:
    """Resets, gaps and nonsense give rates from 0 to 1.1 x CPUs; an average never leaves the range of the rates."""
    track, now, counter = None, 0.0, 0
    rates: list[Usage] = []
    for seconds, growth, memory in steps:
        now += seconds
        counter = max(counter + (growth or 0), 0)
        before = track
        track = read(track, GONE if growth is None else CgroupSample(counter, memory), Moment.of(now, CPUS, WINDOWS))
        if track is None or track.averages is None:
            continue
        if track.silent_passes == 0 and before is not track:
            rates.append(track.averages.last)
        assert 0 <= track.averages.last.cpu_millis <= MOST_MILLIS
        for average in (track.averages.live, track.averages.aggregate):
            assert min(r.cpu_millis for r in rates) <= average.cpu_millis <= max(r.cpu_millis for r in rates)
            assert min(r.memory_bytes for r in rates) <= average.memory_bytes <= max(r.memory_bytes for r in rates)
        assert len(track.live) <= 14 and len(track.aggregate) <= 14


@given(st.lists(st.floats(0.5, 5), min_size=1, max_size=80), st.integers(0, 3_999), st.integers(0, 10**13))
def test_constant_use_is_its_own_average(intervals: list[float], millis: int, memory: int) -> None:
    """Whatever the rhythm of the ticks."""
    track = read(None, CgroupSample(0, memory), Moment.of(0.0, CPUS, WINDOWS))
    for now in accumulate(intervals):
        track = read(track, CgroupSample(round(now * millis * 1_000_000), memory), Moment.of(now, CPUS, WINDOWS))
    assert track is not None
    expected = Usage(millis, memory)
    assert track.measured == Averages(expected, expected, expected)

"""A throttled ratio is of periods that were really counted."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.observe.observation import Absence, CgroupSample, CpuThrottling, Missing
from agent.core.observe.throttling import throttles

GONE = Missing("/x", Absence.GONE)


@pytest.mark.parametrize(
    ("passes", "ratio"),
    [
        # (time, periods, throttled)
        pytest.param([(0, 10, 1)], None, id="one reading says nothing"),
        pytest.param([(0, 10, 1), (1, 20, 6)], 0.5, id="5 of 10 periods"),
        pytest.param([(0, 10, 1), (1, 20, 6), (2, 30, 6)], 0.0, id="newest interval"),
        pytest.param([(0, 10, 1), (10, 20, 6), (19, 20, 6)], 0.5, id="counters read in a slow turn keep their ratio"),
        pytest.param([(0, 10, 1), (1, 20, 6), (17, 20, 6)], None, id="but not for long: the pod is idle"),
        pytest.param([(0, 10, 1), (1, 20, 6), (17, 20, 6), (18, 30, 16)], 1.0, id="and go on from there"),
        pytest.param([(0, 100, 90), (1, 10, 1)], None, id="counters went back"),
        pytest.param([(0, 100, 90), (1, 10, 1), (2, 20, 3)], 0.2, id="and go on from the new ones"),
        pytest.param([(0, 10, 9), (1, 20, 1)], None, id="only one went back: another cgroup's"),
        pytest.param([(0, 10, 1), (1, 12, 9)], None, id="more throttled than there were periods"),
    ],
)
def test_ratio(build: Any, passes: list[tuple[float, int, int]], ratio: float | None) -> None:
    """Throttled periods of all periods between two readings that make sense together."""
    known: Any = {}
    for at, periods, throttled in passes:
        sample = CgroupSample(0, 0, throttling=CpuThrottling(periods, throttled))
        known = throttles(known, build.seen(at, pods={"a": sample}))
    assert known["a"].ratio == ratio


def test_pods_without_counters_are_left_out(build: Any) -> None:
    """A pod that has none, or could not be read, leaves nothing behind."""
    counted = CgroupSample(0, 0, throttling=CpuThrottling(1, 0))
    known = throttles({}, build.seen(0, pods={"a": counted, "b": CgroupSample(0, 0), "c": GONE}))
    assert set(known) == {"a"}
    assert throttles(known, build.seen(1, pods={"a": GONE})) == {}

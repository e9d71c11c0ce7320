"""Thresholds, the conditions they make, and the order of eviction."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from embedded.fault import ConfigurationFault
from embedded.node.pods.pressure import (
    DEFAULT_THRESHOLDS,
    Candidate,
    Crossed,
    Level,
    Signal,
    Threshold,
    crossed,
    message,
    observed,
    parse_thresholds,
    ranked,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MIB = 1 << 20


def test_defaults() -> None:
    """The kubelet's own."""
    assert parse_thresholds(DEFAULT_THRESHOLDS) == (
        Threshold(Signal.MEMORY, amount=100 * MIB),
        Threshold(Signal.DISK, ratio=0.1),
        Threshold(Signal.INODES, ratio=0.05),
    )
    assert parse_thresholds("") == ()


@pytest.mark.parametrize("text", ["memory<1", "memory.available>1Mi", "memory.available<lots", "nodefs.available<.%"])
def test_bad_thresholds(text: str) -> None:
    """One sentence that names the flag and the text."""
    with pytest.raises(ConfigurationFault, match="--eviction-hard"):
        parse_thresholds(text)


def test_crossed() -> None:
    """Below an amount or a share; memory comes first; a signal nobody reads is not met."""
    thresholds = parse_thresholds("pid.available<10,nodefs.available<10%,memory.available<100Mi,nodefs.inodesFree<5%")
    levels = {Signal.DISK: Level(9, 100), Signal.MEMORY: Level(99 * MIB, 1 << 30), Signal.PIDS: Level(10, 100)}
    assert crossed(thresholds, levels) == [
        Crossed(Signal.MEMORY, 100 * MIB, 99 * MIB),
        Crossed(Signal.DISK, 10, 9),
    ]


def test_a_condition_stays_for_the_transition_period() -> None:
    """Counted from when it was last met."""
    met = [Crossed(Signal.INODES, 2, 1)]
    held = observed({}, met, NOW, 300)
    held = observed(held, met, NOW + timedelta(seconds=100), 300)
    assert set(observed(held, [], NOW + timedelta(seconds=399), 300)) == {"DiskPressure"}
    assert observed(held, [], NOW + timedelta(seconds=400), 300) == {}


@pytest.mark.parametrize(
    ("signal", "candidates", "order"),
    [
        pytest.param(
            Signal.MEMORY,
            [("within", 1000, 5, 10), ("above", 1000, 11, 10)],
            ["above", "within"],
            id="above its request first, whatever the priority",
        ),
        pytest.param(Signal.MEMORY, [("high", 9, 20, 0), ("low", 1, 10, 0)], ["low", "high"], id="then priority"),
        pytest.param(Signal.MEMORY, [("some", 0, 30, 20), ("more", 0, 20, 0)], ["more", "some"], id="then the excess"),
        pytest.param(Signal.MEMORY, [("b", 0, 1, 0), ("a", 0, 1, 0)], ["a", "b"], id="ties end in the uid"),
        pytest.param(Signal.MEMORY, [("system", 2_000_001_000, 99, 0)], [], id="system pods never"),
        pytest.param(Signal.PIDS, [("few", 0, 1, 0), ("many", 0, 9, 0)], ["many", "few"], id="process ids"),
    ],
)
def test_ranked(signal: Signal, candidates: list[tuple[str, int, int, int]], order: list[str]) -> None:
    """The kubelet's ranking."""
    built = [Candidate(name, name, priority, used, requested) for name, priority, used, requested in candidates]
    assert [each.name for each in ranked(signal, built)] == order


def test_message() -> None:
    """The kubelet's words and quantities; containers within their requests are not named."""
    victim = Candidate("u", "p", 0, 0, 0, (("a", 200 * MIB, 100 * MIB), ("b", 1, 2), ("c", 1536 * 1024, 0)))
    assert message(Crossed(Signal.MEMORY, 100 * MIB, 99 * MIB + 1024), victim) == (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 101377Ki. "
        "Container a was using 200Mi, request is 100Mi, has larger consumption of memory. "
        "Container c was using 1536Ki, request is 0, has larger consumption of memory. "
    )
    assert "inodes. Threshold quantity: 2048, available: 1024." in message(Crossed(Signal.INODES, 2048, 1024), victim)

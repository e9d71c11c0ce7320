"""The kubelet's values in either version's files, and numbers read back out of them."""

from __future__ import annotations

import pytest

from embedded.cgroups.ceilings import Ceiling
from embedded.cgroups.knobs import KNOBS, Use, number_of, weight


@pytest.mark.parametrize(
    ("shares", "expected"),
    [(2, 1), (102, 4), (1024, 39), (2048, 79), (262_144, 10_000), (0, 1), (1 << 30, 10_000)],
)
def test_weight(shares: int, expected: int) -> None:
    """kubelet's formula, 1 + (shares - 2) * 9999 / 262142, within the bounds of both."""
    assert weight(shares) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (1, {"cpu.shares": "512", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "50000", "memory.limit_in_bytes": "4096"}),
        (2, {"cpu.weight": "20", "cpu.max": "50000 100000", "memory.max": "4096"}),
    ],
)  # fmt: skip
def test_ceiling(version: int, expected: dict[str, str]) -> None:
    """What has no value is not written, so that the kernel's default stays."""
    assert {write.file: write.text for write in KNOBS[version].ceiling(Ceiling(512, 50_000, 4096))} == expected
    assert [write.file for write in KNOBS[version].ceiling(Ceiling(512))] == [next(iter(expected))]


@pytest.mark.parametrize(
    ("version", "texts"),
    [
        (1, ("5000000\n", "300\n", "cache 9\ninactive_file 7\ntotal_inactive_file 100\n")),
        (2, ("usage_usec 5000\nuser_usec 1\n", "300\n", "anon 9\ninactive_file 100\n")),
    ],
)
def test_use(version: int, texts: tuple[str, str, str]) -> None:
    """Nanoseconds and bytes; the working set leaves out page cache that nobody touched, and is never below 0."""
    assert KNOBS[version].use(*texts) == Use(5_000_000, 300, 200)
    assert KNOBS[version].use(texts[0], "50\n", texts[2]).working_set_bytes == 0


def test_a_table_without_the_number() -> None:
    """Is no zero."""
    with pytest.raises(ValueError, match="no oom_kill"):
        number_of("oom_kill", "oom_kill_disable 0\n")

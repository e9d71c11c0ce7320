"""Kernel text becomes numbers, garbage becomes one clear ValueError."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core import parse
from model.report import Pressure

MEMORY_STAT = b"cache 1\ntotal_cache 4096\ntotal_inactive_anon 100\ntotal_active_anon 20\ntotal_unevictable 3\n"
PSI = b"some avg10=1.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=0\n"


def test_numbers_of_each_file() -> None:
    """Worked by hand from the kernel's own layout."""
    assert parse.whole_number(b"123\n") == 123
    assert parse.whole_number(b"-1\n") == -1
    assert parse.anonymous_memory(MEMORY_STAT) == 123
    assert parse.throttling(b"nr_periods 9\nnr_throttled 2\nthrottled_time 5\n") == parse.CpuThrottling(9, 2)
    assert parse.busy_ticks(b"cpu  10 1 20 1000 500 3 4 99 0 0\ncpu0 1 1\n") == 38
    assert parse.pressure(PSI, PSI) == Pressure(1.5, 1.5, 0.25)
    assert parse.pressure_avg10(b"some avg10=0.10 avg60=0 avg300=0 total=1\n") == (0.1, 0.0)


@pytest.mark.parametrize("text", [b"", b"\n", b"max\n", b"12 13\n", b"0x10", b"--1", b"1e3", b"\xff\xfe", b"1\n2\n"])
def test_not_a_number(text: bytes) -> None:
    """Neither empty nor foreign text is ever a number."""
    with pytest.raises(ValueError, match="is not a whole number"):
        parse.whole_number(text)


@pytest.mark.parametrize("text", [b"", b"total_inactive_anon 5\n", MEMORY_STAT.replace(b" 20", b" x"), b"\x00\x01"])
def test_memory_stat_must_be_whole(text: bytes) -> None:
    """A missing or unreadable row is an error, not a zero."""
    with pytest.raises(ValueError, match=r"missing in|is not a whole number"):
        parse.anonymous_memory(text)


@given(st.binary(max_size=200))
def test_no_parser_crashes(text: bytes) -> None:
    """Whatever the bytes, the answer is a value or a ValueError."""
    for parser in (
        parse.whole_number,
        parse.anonymous_memory,
        parse.throttling,
        parse.busy_ticks,
        parse.pressure_avg10,
    ):
        try:
            parser(text)  # type: ignore[operator]
        except ValueError:
            continue

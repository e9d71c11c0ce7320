"""CPU lists read and written as the kernel does."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.cpu_lists import format_cpus, parse_cpus


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", ()),
        (" \n", ()),
        ("0", (0,)),
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("8, 0-1", (0, 1, 8)),
        ("1,1-2", (1, 2)),
        ("65535", (65535,)),
    ],
)
def test_read(text: str, cpus: tuple[int, ...]) -> None:
    """Ascending, each once."""
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["x", "-1", "3-1", "0-", "1,,2", "0-65536", "65536", "0-65535,0", "1-2-3"])
def test_what_is_no_list(text: str) -> None:
    """Also one that would name more CPUs than any machine has."""
    with pytest.raises(ValueError, match="is not a CPU list"):
        parse_cpus(text)


@given(st.sets(st.integers(0, 200)))
def test_written_is_read_again(cpus: set[int]) -> None:
    """As short as can be: no two runs touch."""
    text = format_cpus(cpus)
    assert parse_cpus(text) == tuple(sorted(cpus))
    runs = [[int(end) for end in run.split("-")] for run in text.split(",") if run]
    assert all(one[-1] + 1 < other[0] for one, other in pairwise(runs))

"""Linux CPU lists."""

from __future__ import annotations

import pytest

from model.topology import format_cpus, parse_cpus


@pytest.mark.parametrize(
    ("text", "cpus", "shortest"),
    [
        ("0-3,8,10-11\n", (0, 1, 2, 3, 8, 10, 11), "0-3,8,10-11"),
        ("", (), ""),
        ("\n", (), ""),
        ("7", (7,), "7"),
        ("5,3,4,3-4", (3, 4, 5), "3-5"),
        (" 0 , 2 ", (0, 2), "0,2"),
        ("65535", (65535,), "65535"),
    ],
)
def test_lists(text: str, cpus: tuple[int, ...], shortest: str) -> None:
    """Read in any order, overlaps and all; written in the shortest form."""
    assert parse_cpus(text) == cpus
    assert format_cpus(cpus) == shortest


@pytest.mark.parametrize("text", ["a", "3-1", "-1", "1-", "0,,1", "0-65536", "0-7:2/4", "1.5", "0-99999999999"])
def test_what_is_no_list(text: str) -> None:
    """The text and how one is written; a huge range costs nothing."""
    with pytest.raises(ValueError, match="is not a CPU list; write numbers and ranges such as 0-3,8"):
        parse_cpus(text)

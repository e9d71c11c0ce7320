"""Flags as Go reads them."""

from __future__ import annotations

import pytest

from jobs.core.plugins.arguments import flags


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], {}),
        (["--port=29500", "-master=chief"], {"port": "29500", "master": "chief"}),
        (["--port", "29500"], {"port": "29500"}),
        (["--disable-network-policy"], {"disable-network-policy": "true"}),
        (["--a", "--b=1", "stray"], {"a": "true", "b": "1"}),
    ],
)
def test_flags(arguments: list[str], found: dict[str, str]) -> None:
    assert flags(arguments) == found

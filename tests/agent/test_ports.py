"""What the tick's facts become for each decision."""

from __future__ import annotations

from typing import Any

import pytest

from model.nodecolocation import NodeColocation
from model.resources import CPU, MEMORY, ResourceVector

RAW: dict[str, tuple[ResourceVector | None, int | None]] = {
    "not amplified": (None, None),
    "amplified": (ResourceVector({CPU: 3500}), 3500),
    "another resource is": (ResourceVector({MEMORY: 1}), None),
}


@pytest.mark.parametrize(("raw", "millis"), RAW.values(), ids=RAW.keys())
def test_limits_know_what_was_allocatable_before(build: Any, raw: ResourceVector | None, millis: int | None) -> None:
    """Of CPU, where the Node's annotation says it."""
    facts = build.facts(colocation=NodeColocation(raw_allocatable=raw))
    assert facts.for_limits().raw_allocatable_millis == millis

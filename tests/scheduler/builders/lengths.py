"""Properties twice: with a few examples among the fast tests, with many among the slow ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings


def at_length(brief: Any, *drawn: Any, examples: int = 300, **named: Any) -> Any:
    """The property `brief`, to be kept under a `test_` name of its own; `drawn` and `named` are what it is given."""
    wanted = settings(max_examples=examples)
    return pytest.mark.slow(pytest.mark.timeout(900)(wanted(given(*drawn, **named)(brief.hypothesis.inner_test))))

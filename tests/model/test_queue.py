"""Which queue governs work."""

from __future__ import annotations

import pytest

from model.queue import DEFAULT_QUEUE, ROOT_QUEUE, governing


@pytest.mark.parametrize(
    ("case", "queue", "online", "governs"),
    [
        ("batch work that names none", DEFAULT_QUEUE, False, DEFAULT_QUEUE),
        ("a service that names none", DEFAULT_QUEUE, True, ROOT_QUEUE),
        ("batch work of a queue", "train", False, "train"),
        ("a service that names one", "train", True, "train"),
    ],
)
def test_what_governs(case: str, queue: str, online: bool, governs: str) -> None:
    """A service without a word about queues waits for nobody's quota."""
    assert governing(queue, online=online) == governs, case

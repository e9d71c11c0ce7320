"""Every reason has words of its own."""

from __future__ import annotations

from model.reason import Reason, words


def test_every_reason_has_words() -> None:
    """One short line, and no code in it."""
    told = {reason: words(reason) for reason in Reason}
    assert [reason for reason, line in told.items() if not line.strip() or "\n" in line] == []
    assert [reason for reason, line in told.items() if reason.value in line and " " not in line] == []


def test_codes_are_one_word() -> None:
    """They are labels of metrics and reasons of Events."""
    assert [reason.value for reason in Reason if not reason.value.isalnum() or not reason.value[0].isupper()] == []

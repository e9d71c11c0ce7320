"""Output of commands."""

from __future__ import annotations

import pytest

from cli.formats import TableFormat, TextFormat, visible

TEXTS = {"plain\n\ttext": "plain\n\ttext", "\x1b[2J": "\\u001b[2J", "ü": "ü", "\r": "\\r"}


@pytest.mark.parametrize(("text", "shown"), TEXTS.items(), ids=["plain", "escape", "letter", "return"])
def test_what_commands_a_terminal_is_shown_as_text(text: str, shown: str) -> None:
    """Lines and columns stay."""
    assert visible(text) == shown


def test_formats() -> None:
    assert [*TextFormat, *TableFormat] == ["text", "json", "table", "json"]

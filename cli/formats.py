"""Output formats of commands."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer


class TextFormat(StrEnum):
    """Output formats of an answer."""

    TEXT = "text"
    JSON = "json"


class TableFormat(StrEnum):
    """Output formats of decisions."""

    TABLE = "table"
    JSON = "json"


TextOption = Annotated[TextFormat, typer.Option("--output", "-o", help="Output format.")]
TableOption = Annotated[TableFormat, typer.Option("-o", "--output", help="Output format.")]


def visible(text: str) -> str:
    """Without what commands a terminal: an agent's words are in it, and whoever has its token chooses them."""
    return "".join(each if each.isprintable() or each in "\n\t" else json.dumps(each)[1:-1] for each in text)

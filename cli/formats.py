"""Output formats of commands."""

from __future__ import annotations

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

"""Arguments of plugins, as Go's flag package reads them."""

from __future__ import annotations

from collections.abc import Iterable


def flags(arguments: Iterable[str]) -> dict[str, str]:
    """`--name=value`, `-name value`, and `--name`, which is `true`."""
    found: dict[str, str] = {}
    pending = ""
    for text in arguments:
        if text.startswith("-"):
            name, equals, value = text.lstrip("-").partition("=")
            found[name] = value if equals else "true"
            pending = "" if equals else name
        elif pending:
            found[pending] = text
            pending = ""
    return found

"""Warnings as HTTP headers, bounded as kube-apiserver bounds them (`endpoints/filters/warning.go`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_MOST_CHARACTERS = 4096  # of all together; beyond it each is cut
_CUT_CHARACTERS = 256
_MOST = 64  # Python's http.client takes no answer of more than 100 headers


def warning_headers(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """One header for each different text; what no header may hold becomes a blank."""
    distinct = list(dict.fromkeys(filter(None, texts)))[:_MOST]
    cut = sum(map(len, distinct)) > _MOST_CHARACTERS
    written = 0
    for text in distinct:
        if written >= _MOST_CHARACTERS:
            return
        told = text[:_CUT_CHARACTERS] if cut else text
        written += len(told)
        yield "Warning", f'299 - "{_quoted(told)}"'


def _quoted(text: str) -> str:
    printable = "".join(letter if letter.isprintable() else " " for letter in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')

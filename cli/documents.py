"""Documents of a file as they stand there, YAML or JSON, or of standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from kube.yamldocuments import InvalidYaml, yaml_documents
from model.fault import ConfigurationFault

_STDIN = Path("-")
_LARGEST_BYTES = 256 << 20
"""Of one file: a device or an endless pipe must not fill the memory."""


def documents(file: Path) -> list[object]:
    """Raises ConfigurationFault naming the file and what is wrong with it."""
    where = name_of(file)
    try:
        return _parsed(_content(file, where), where)
    except RecursionError as error:
        raise too_deep(where) from error


def name_of(file: Path) -> str:
    """What messages call it."""
    return "standard input" if file == _STDIN else str(file)


def too_deep(where: str) -> ConfigurationFault:
    """Of a document that nests more than can be read."""
    return ConfigurationFault(where, "is nested too deeply", "check -f")


def _content(file: Path, where: str) -> bytes:
    try:
        with nullcontext(sys.stdin.buffer) if file == _STDIN else file.open("rb") as stream:
            content = stream.read(_LARGEST_BYTES + 1)
    except OSError as error:
        raise ConfigurationFault(where, f"cannot be read: {error.strerror}", "check -f") from error
    if len(content) > _LARGEST_BYTES:
        raise ConfigurationFault(where, f"is larger than {_LARGEST_BYTES >> 20} MiB", "give fewer nodes at a time")
    return content


def _parsed(content: bytes, where: str) -> list[object]:
    """JSON is YAML too, but a cluster's pods as JSON are read many times faster as what they are."""
    if content.lstrip()[:1] == b"{":
        try:
            return list(_json_documents(content.decode()))
        except ValueError:
            pass  # a YAML document may begin with a brace
    try:
        return yaml_documents(content)
    except InvalidYaml as error:
        raise ConfigurationFault(where, f"is neither YAML nor JSON: {error}", "mend it, or check -f") from error


def _json_documents(text: str) -> Iterator[object]:
    """One after another, as kubectl accepts them. Raises ValueError."""
    decoder, at = json.JSONDecoder(), 0
    while rest := text[at:].lstrip():
        document, length = decoder.raw_decode(rest)
        yield document
        at = len(text) - len(rest) + length

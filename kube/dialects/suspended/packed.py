"""What jobs that wait whole say, kept as bytes: as trees of values it would take up to 24 times their memory, for each
job that waits, and whoever may write jobs writes as many as he likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kube.dialects.documents.document import too_deep
from kube.objects import UnreadJob, UntypedObject
from model.fault import ConfigurationFault


class PackedTemplate(Mapping[str, Any]):
    """A pod template, which is read anew each time it is asked for anything; two of the same bytes are equal."""

    __slots__ = ("_bytes",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, template: Mapping[str, Any]) -> None:
        own = template._bytes if isinstance(template, PackedTemplate) else None
        self._bytes: bytes = own or msgspec.json.encode(template)

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PackedTemplate):
            return self._bytes == other._bytes or self._read() == other._read()
        return self._read() == other

    def _read(self) -> dict[str, Any]:
        return msgspec.json.decode(self._bytes, type=dict[str, Any])


def untyped(source: UnreadJob) -> UntypedObject:
    """A job with its spec; one that cannot be read has none, which is told of it as of any other."""
    try:
        spec = unpacked(source.spec, "spec")
    except ConfigurationFault:
        spec = None
    return UntypedObject(source.metadata, spec, source.status)


def unpacked(raw: object, where: str) -> Any:
    """A spec as it came; None where there is none. Raises ConfigurationFault."""
    if not isinstance(raw, msgspec.Raw):
        return raw
    try:
        return msgspec.json.decode(raw) if len(raw) else None
    except RecursionError as error:
        raise too_deep(where) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationFault(where, f"cannot be read: {error}", "write it anew") from error

"""What goes into the core and comes out of it, whatever carries it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, encode
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Read:
    """A body as a value, or why it is none."""

    value: Any = None
    error: StatusError | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request: the path still percent-encoded, header names in lower case, already authenticated."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    user: UserInfo = ANONYMOUS
    read: Read | None = None  # what the body says, where it was read already
    query_string: str = ""  # the query as it came, which `query` has only the last of equal names of

    @property
    def accept(self) -> str:
        return self.headers.get("accept", "")

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    def flag(self, name: str) -> bool:
        """Whether an option is on: it is unless absent, `false` or `0`, as apimachinery reads query booleans."""
        return self.query.get(name, "false").lower() not in ("false", "0")


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = JSON
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on until its chunks end.

    Whoever carries it calls `release` when done with it, also when not a single chunk was taken.
    """

    status: int
    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    release: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A connection to a node that has agreed to another protocol, with the head of its answer.

    Whoever carries it passes bytes on in both directions, and closes the writer.
    """

    head: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    status: int = 101
    warnings: tuple[str, ...] = ()


def answer(obj: Object, code: int = 200, warnings: list[str] | None = None) -> Response:
    return Response(code, encode(obj), warnings=tuple(warnings or ()))

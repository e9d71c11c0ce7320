"""Reviews of callers, who they are and what they may: TokenReview and SubjectAccessReview, cached for a short time.

What is remembered is found by a digest, so no token stays in memory because of it, and none is ever in a log or a
fault. Without the API server nobody new is known: a KubernetesFault, never a guess.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

from kube.client import KubeClient, decode

NODE_KEY = "authentication.kubernetes.io/node-name"
POD_KEY = "authentication.kubernetes.io/pod-name"
POD_UID_KEY = "authentication.kubernetes.io/pod-uid"
_NODE_USER = "system:node:"
_YES_SECONDS = 60.0
"""A token that was revoked, or a right that was taken, counts for this long; the kubelet's webhook: 2 min."""
_NO_SECONDS = 10.0
_TIMEOUT_SECONDS = 10.0
_AT_ONCE = 16
# RFC 6750 b64token; the longest that fits into what gRPC and http.server take as one header.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{1,16384}=*")
_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

T = TypeVar("T")


class Caller(msgspec.Struct, frozen=True):
    """The user that a token belongs to, as the API server names it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def node(self) -> str:
        """The node that the token is bound to, or that the caller is the kubelet of; empty for nobody's."""
        bound = self.first(NODE_KEY)
        return bound or (self.name.removeprefix(_NODE_USER) if self.name.startswith(_NODE_USER) else "")

    def first(self, key: str) -> str:
        """The first value of an extra field, empty without one."""
        return next(iter(self.extra.get(key, ())), "")


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] | None = None
    extra: dict[str, tuple[str, ...]] | None = None


class _Status(msgspec.Struct, frozen=True):
    """Of both reviews."""

    authenticated: bool = False
    user: _User = _User()
    audiences: tuple[str, ...] | None = None
    allowed: bool = False


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Reviews:
    """Asks the API server of `client`. With `audiences`, a token counts only if it was made for one of them.

    The program needs `create` on tokenreviews and subjectaccessreviews.
    """

    def __init__(
        self,
        client: KubeClient,
        audiences: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        most_remembered: int = 16_384,
    ) -> None:
        self._client = client
        self._audiences = audiences
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._callers: _Memory[Caller | None] = _Memory(clock, most_remembered)
        self._rights: _Memory[bool] = _Memory(clock, most_remembered)

    async def caller(self, token: str) -> Caller | None:
        """Whose token it is; None for nobody's. Raises KubernetesFault where that cannot be found out."""
        if not _TOKEN.fullmatch(token):
            return None
        return await self._callers.get(_digest(token), lambda: self._whose(token))

    async def allowed(self, caller: Caller, verb: str, path: str) -> bool:
        """Whether the caller may do `verb` to the non-resource URL `path`. Raises KubernetesFault."""
        question = _subject(caller) | {"nonResourceAttributes": {"path": path, "verb": verb}}
        return await self._rights.get(_digest(question), lambda: self._may(question))

    async def allowed_object(self, caller: Caller, verb: str, resource: str, name: str, subresource: str = "") -> bool:
        """Whether the caller may do `verb` to one object of the core group. Raises KubernetesFault."""
        what = {"verb": verb, "resource": resource, "name": name, "subresource": subresource, "version": "v1"}
        question = _subject(caller) | {"resourceAttributes": what}
        return await self._rights.get(_digest(question), lambda: self._may(question))

    async def _whose(self, token: str) -> Caller | None:
        spec: dict[str, Any] = {"token": token} | ({"audiences": self._audiences} if self._audiences else {})
        status = await self._ask(_TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
        # A server that knows nothing of audiences answers without them, and then vouches for its own alone.
        meant = not self._audiences or bool(set(self._audiences) & set(status.audiences or ()))
        if not status.authenticated or not status.user.username or not meant:
            return None
        user = status.user
        return Caller(user.username, user.uid, user.groups or (), user.extra or {})

    async def _may(self, question: Mapping[str, Any]) -> bool:
        kind = ("authorization.k8s.io/v1", "SubjectAccessReview")
        return (await self._ask(_ACCESS_REVIEWS, *kind, question)).allowed

    async def _ask(self, path: str, version: str, kind: str, spec: Mapping[str, Any]) -> _Status:
        body = msgspec.json.encode({"apiVersion": version, "kind": kind, "spec": spec})
        async with self._turns:
            answer = await self._client.request("POST", path, body=body, timeout_seconds=_TIMEOUT_SECONDS)
        return decode(answer, _Review, kind).status


class _Memory(Generic[T]):
    """Answers by digest: asked once however many wait, a yes kept a minute, a no for seconds, a failure not at all."""

    def __init__(self, clock: Callable[[], float], most: int) -> None:
        self._clock = clock
        self._most = most
        self._known: OrderedDict[bytes, tuple[float, T]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[T]] = {}

    async def get(self, key: bytes, ask: Callable[[], Awaitable[T]]) -> T:
        known = self._known.get(key)
        if known is not None and self._clock() < known[0]:
            self._known.move_to_end(key)
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._learn(key, ask))
            task.add_done_callback(lambda done: self._answered(key, done))
        # One who leaves does not take the answer from the others.
        return await asyncio.shield(task)

    async def _learn(self, key: bytes, ask: Callable[[], Awaitable[T]]) -> T:
        answer = await ask()
        self._known[key] = (self._clock() + (_YES_SECONDS if answer else _NO_SECONDS), answer)
        self._known.move_to_end(key)
        if len(self._known) > self._most:
            self._known.popitem(last=False)
        return answer

    def _answered(self, key: bytes, task: asyncio.Task[T]) -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # those who waited have it; with nobody left it is nobody's


def _subject(caller: Caller) -> dict[str, Any]:
    extra = {key: list(values) for key, values in caller.extra.items()}
    return {"user": caller.name, "uid": caller.uid, "groups": list(caller.groups), "extra": extra}


def _digest(value: object) -> bytes:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).digest()

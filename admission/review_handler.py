"""One review from its bytes to its answer's bytes, counted and told about."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from admission.documents import KINDS
from admission.evictions import EvictionReviewer
from admission.namespace_turns import NamespaceTurns
from admission.ports import Meter, Reply
from admission.reviewer import UNAVAILABLE, Malformed, Path, ReviewAnswer, Reviewer, ReviewRequest, TooDeep, read, told

log = structlog.get_logger()

_KNOWN_KINDS = frozenset({"Pod", "Eviction", *(kind for _, kind in KINDS)})


class ReviewHandler:
    """`look_for` makes a namespace known, as far as it can be, `look_for_parent` the parent of a queue, by API group,
    kind and content.
    """

    def __init__(
        self,
        reviewer: Reviewer,
        evictions: EvictionReviewer,
        look_for: Callable[[str], Awaitable[None]],
        look_for_parent: Callable[[str, str, bytes], Awaitable[None]],
        meter: Meter,
    ) -> None:
        self._reviewer = reviewer
        self._evictions = evictions
        self._look_for = look_for
        self._look_for_parent = look_for_parent
        self._meter = meter
        self._turns = NamespaceTurns()

    async def handle(self, path: str, body: bytes) -> Reply:
        """404 for another path, 400 for a body that is no review."""
        began = time.monotonic()
        if path not in list(Path):
            return Reply(404, f"try {', '.join(Path)}".encode())
        try:
            answer = await self._answer(Path(path), body)
        except TooDeep as error:
            answer = error.answer
        except Malformed as error:
            self._meter.reviewed("", "malformed", time.monotonic() - began)
            log.warning("malformed review", path=path, error=str(error))
            return Reply(400, str(error).encode())
        self._tell(answer)
        self._meter.reviewed(_kind(answer.request), _result(answer), time.monotonic() - began)
        return Reply(200, answer.encoded())

    async def _answer(self, path: Path, body: bytes) -> ReviewAnswer:
        request = read(body)
        if path == Path.VALIDATE_EVICTION:
            return await self._evictions.answer(request)
        if path == Path.MUTATE_POD and request.namespace:
            await self._look_for(request.namespace)
        if path == Path.VALIDATE_OBJECT:
            await self._look_for_parent(request.kind.group, request.kind.kind, bytes(request.object))
        if self._turns.crowded(request.namespace, len(body)):
            told = f"too much of namespace {request.namespace} is to be reviewed at once; try again"
            return ReviewAnswer(request, told, code=UNAVAILABLE)
        return await self._turns.review(request.namespace, len(body), partial(self._reviewer.answer, path, request))

    def _tell(self, answer: ReviewAnswer) -> None:
        """What was done or refused; what passed untouched or is put off is not worth a line."""
        request = answer.request
        if answer.code == UNAVAILABLE:
            return
        for step in answer.steps:
            if step.profile:
                self._meter.profiled(step.profile, step.reason.value)
        if answer.refusal or answer.steps or answer.warnings:
            log.info(
                "refused" if answer.refusal else "reviewed",
                kind=request.kind.kind,
                namespace=request.namespace,
                name=request.name,
                operation=request.operation,
                dry_run=bool(request.dry_run),
                refusal=answer.refusal,
                steps=[told(step) for step in answer.steps],
                warnings=answer.warnings,
            )


def _kind(request: ReviewRequest) -> str:
    """As a label of a metric: whoever sends reviews must not be able to make up new series."""
    return request.kind.kind if request.kind.kind in _KNOWN_KINDS else "other"


def _result(answer: ReviewAnswer) -> str:
    return "refused" if answer.refusal else "changed" if answer.patch else "allowed"

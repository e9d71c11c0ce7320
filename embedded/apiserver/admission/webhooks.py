"""Admission webhooks: who of the configured ones is asked about a write, in which order, and what follows.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import dataclass
from typing import Protocol

from embedded.apiserver.admission import operations, review
from embedded.apiserver.admission.review import BadAnswer, Verdict
from embedded.apiserver.admission.webhook_call import Address, CallFailed
from embedded.apiserver.admission.webhook_rules import Webhook, exempt
from embedded.apiserver.admission.webhook_source import WebhookSource
from embedded.apiserver.apimachinery.json_patch import json_patch
from embedded.apiserver.apimachinery.objects import Object, copy, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.registry.resources import DeleteOptions, Draft, Resources
from embedded.apiserver.request.attributes import Authorizer
from embedded.apiserver.request.operation import Operation, shown

_log = logging.getLogger(__name__)


class Caller(Protocol):
    """Carries a review to a webhook and its answer back."""

    async def post(self, address: Address, body: bytes, timeout_seconds: int) -> bytes:
        """Raises CallFailed."""


@dataclass(slots=True)
class _Rounds:
    """Who was called before, and whom a change made since then calls again."""

    changed: bool = False
    earlier: frozenset[tuple[str, str]] = frozenset()
    again: frozenset[tuple[str, str]] = frozenset()

    def note(self, hook: Webhook, changed: bool) -> None:
        if changed:
            self.recall()
        if hook.reinvoked:
            self.earlier |= {hook.key}
        self.changed |= changed

    def recall(self) -> None:
        self.again, self.earlier = self.again | self.earlier, frozenset()


class Webhooks:
    """The stored configurations at work; implements `admitted_writes.AdmissionHooks`."""

    def __init__(self, resources: Resources, caller: Caller, authorizer: Authorizer) -> None:
        self._resources = resources
        self._caller = caller
        self._configured = WebhookSource(resources, authorizer)

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        if exempt(rtype):
            return False
        versions = self._configured.versions(rtype)
        configured = (*self._configured.mutating(), *self._configured.validating())
        return any(hook.matching.covers(versions, subresource) for hook in configured)

    async def mutate(self, draft: Draft) -> None:
        """Every webhook in turn; those with IfNeeded once more when the object changed after their turn."""
        hooks, rounds = self._configured.mutating(), _Rounds()
        for hook in hooks:
            operation = _as_mutated(draft)
            if (shown_as := self._configured.wanted_as(hook, operation)) is not None:
                rounds.note(hook, await self._changed(hook, operation, shown_as, draft))
        if not rounds.changed:
            return
        before = copy(draft.new)
        self._resources.readmit(draft)
        if draft.new != before:
            rounds.recall()
        for hook in (hook for hook in hooks if hook.key in rounds.again):
            operation = _as_mutated(draft)
            if (shown_as := self._configured.wanted_as(hook, operation)) is not None:
                await self._changed(hook, operation, shown_as, draft)

    async def validate(self, draft: Draft) -> None:
        await self._validated(operations.write(draft), draft.options.warnings)

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None:
        await self._looked_at(operations.deletion(rtype, old, options), options.warnings)

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None:
        await self._looked_at(operation, warnings)

    async def _looked_at(self, operation: Operation, warnings: list[str]) -> None:
        """By mutating webhooks, too, though there is nothing that they may change."""
        for hook in self._configured.mutating():
            shown_as = self._configured.wanted_as(hook, operation)
            verdict = None if shown_as is None else await self._asked(hook, operation, shown_as, mutating=True)
            if verdict is not None:
                _heed(hook, verdict, warnings)
                if verdict.patch:
                    raise _internal(
                        f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for '
                        "this operation"
                    )
        await self._validated(operation, warnings)

    async def _validated(self, operation: Operation, warnings: list[str]) -> None:
        """All at once; of several refusals the first in configured order is told."""
        wanted = [(hook, self._configured.wanted_as(hook, operation)) for hook in self._configured.validating()]
        called = [(hook, shown_as) for hook, shown_as in wanted if shown_as is not None]
        asked = (self._asked(hook, operation, shown_as, mutating=False) for hook, shown_as in called)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for (hook, _), answer in zip(called, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            if answer is not None:
                _heed(hook, answer, warnings)

    # -- one webhook -----------------------------------------------------------------------------------------

    async def _changed(self, hook: Webhook, operation: Operation, shown_as: ResourceType, draft: Draft) -> bool:
        """Ask a mutating webhook and apply its patch to the draft; whether that changed anything."""
        verdict = await self._asked(hook, operation, shown_as, mutating=True)
        if verdict is None:
            return False
        _heed(hook, verdict, draft.options.warnings)
        if not verdict.patch:
            return False
        sent, before = shown(operation, operation.new, shown_as), copy(draft.new)
        try:
            self._resources.amend(draft, json_patch(sent, verdict.patch))
        except StatusError as error:
            raise _internal(error.message) from None
        return draft.new != before

    async def _asked(
        self, hook: Webhook, operation: Operation, shown_as: ResourceType, *, mutating: bool
    ) -> Verdict | None:
        """What a webhook says; None when it cannot be asked and its policy is to go on without it."""
        uid = str(uuid.uuid4())
        body = encode(review.question(operation, shown_as, uid))
        try:
            answer = await self._caller.post(self._configured.address(hook.client), body, hook.timeout_seconds)
            return review.verdict(answer, uid, mutating)
        except CallFailed as error:
            failure = f'failed calling webhook "{hook.name}": failed to call webhook: {error}'
        except BadAnswer as error:
            failure = f'failed calling webhook "{hook.name}": received invalid webhook response: {error}'
        if not hook.ignores_failure:
            _log.warning("failing closed: %s", failure)
            raise _internal(failure)
        _log.warning("failing open: %s", failure)
        return None


def _as_mutated(draft: Draft) -> Operation:
    return operations.birth(draft) if draft.old is None else operations.write(draft)


def _heed(hook: Webhook, verdict: Verdict, warnings: list[str]) -> None:
    """Pass on what the client should be told; raises the webhook's refusal."""
    warnings.extend(verdict.warnings)
    if not verdict.allowed:
        raise review.denial(hook.name, verdict.status)


def _internal(message: str) -> StatusError:
    """Errors of admission itself, which is where a real API server has 500s from."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)

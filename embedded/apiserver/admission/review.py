"""AdmissionReview, admission.k8s.io/v1: the question to a webhook, and its answer read back."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from typing import Any

import msgspec

from embedded.apiserver.apimachinery.objects import Object, decode
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.request.operation import Operation, request_of, shown

_API_VERSION = "admission.k8s.io/v1"


class BadAnswer(ValueError):
    """The webhook's answer cannot be used; the message says why, in the words of a real API server."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook answered; `patch` is the decoded JSON patch, None without one."""

    allowed: bool
    status: Object
    patch: Any
    warnings: tuple[str, ...]


def question(operation: Operation, shown_as: ResourceType, uid: str) -> Object:
    """The AdmissionReview that asks about an operation, its objects in the version the webhook wants."""
    objects = {
        "object": shown(operation, operation.new, shown_as),
        "oldObject": shown(operation, operation.old, shown_as),
    }
    request = {"uid": uid, **request_of(operation, shown_as), **objects}
    return {"kind": "AdmissionReview", "apiVersion": _API_VERSION, "request": request}


def verdict(body: bytes, uid: str, mutating: bool) -> Verdict:
    """The answer in a response body; raises BadAnswer."""
    try:
        review = decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(f"the response body cannot be decoded: {error}") from None
    response = review.get("response") if isinstance(review, dict) else None
    if not isinstance(review, dict) or not isinstance(response, dict):
        raise BadAnswer("webhook response was absent")
    spoken = f"{review.get('apiVersion', '')}, Kind={review.get('kind', '')}"
    if spoken != f"{_API_VERSION}, Kind=AdmissionReview":
        raise BadAnswer(f"expected webhook response of {_API_VERSION}, Kind=AdmissionReview, got {spoken}")
    if response.get("uid") != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    status = response.get("status")
    warnings = response.get("warnings")
    return Verdict(
        allowed=response.get("allowed") is True,
        status=status if isinstance(status, dict) else {},
        patch=_patch(response, mutating),
        warnings=tuple(map(str, warnings)) if isinstance(warnings, list) else (),
    )


def _patch(response: Object, mutating: bool) -> Any:
    patch, kind = response.get("patch"), response.get("patchType")
    if not mutating:
        for key, value in (("patch", patch), ("patchType", kind)):
            if value:
                raise BadAnswer(f"validating webhook may not return response.{key}")
        return None
    if not patch and not kind:
        return None
    if not (patch and kind):
        present, absent = ("patch", "patchType") if patch else ("patchType", "patch")
        raise BadAnswer(f"webhook returned response.{present} but not response.{absent}")
    if kind != "JSONPatch":
        raise BadAnswer(f'invalid response.patchType of "{kind}"')
    try:
        return decode(b64decode(patch, validate=True))
    except (ValueError, TypeError, RecursionError) as error:  # msgspec's decoding errors are ValueErrors
        raise BadAnswer(f"received undecodable patch in webhook response: {error}") from None


def denial(webhook: str, status: Object) -> StatusError:
    """The refusal a client sees: the webhook's own status, under a message that says who refused."""
    denied = f'admission webhook "{webhook}" denied the request'
    why, reason, code = status.get("message"), status.get("reason"), status.get("code")
    text = f"{denied}: {why or reason}" if why or reason else f"{denied} without explanation"
    details = status.get("details")
    return StatusError(
        code if isinstance(code, int) and 400 <= code <= 599 else 400,
        str(reason or ""),
        text,
        details if isinstance(details, dict) else None,
    )

"""AdmissionReviews answered: the API server's question in, its answer out, with the reasons.

Source: https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
"""

from __future__ import annotations

import random
import re
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Any

import msgspec

from admission import pod_warnings
from admission.check_result import CheckContext, CheckResult
from admission.core.jsonpatch import difference
from admission.core.mutate import DRAWS, Mutation, MutationPolicy, MutationStep, PodFacts, created
from admission.core.validate import PodRules, violations
from admission.documents import check, check_deleted
from admission.pod_warnings import claims
from admission.templates import Template, defaulted, holds, template_of
from kube.dialects.documents.document import too_deep
from kube.objects import Pod
from kube.podmerge import merge_pod
from model.fault import ConfigurationFault
from model.queue import DEFAULT_QUEUE
from model.reason import Reason, words

API_VERSION = "admission.k8s.io/v1"
_MIRROR = "kubernetes.io/config.mirror"
_LONGEST_WARNING = 256
"""Characters; the API server cuts longer ones off."""
_MOST_WARNINGS = 16
_LONGEST_NOTE = 1000
FORBIDDEN, UNAVAILABLE = 403, 503
_REASONS = {FORBIDDEN: "Forbidden", UNAVAILABLE: "ServiceUnavailable"}
_HEAD = re.compile(
    rb'"request"\s*:\s*\{\s*"uid"\s*:\s*"([^"\\]+)"'
    rb'(?:\s*,\s*"kind"\s*:\s*\{[^{}]*"kind"\s*:\s*"([^"\\]*)")?'
)
"""How every API server begins: Go writes fields in the order of their declaration, the uid first."""
_HEAD_BYTES = 4096
_TOLD = (Reason.PROFILE_UNREADABLE, Reason.NAMESPACE_UNKNOWN)


class Malformed(ValueError):
    """The body is no AdmissionReview that can be answered; the message says why."""


class TooDeep(Exception):
    """The object is nested too deep to be read; `answer` refuses it, since a malformed review would let it pass."""

    def __init__(self, answer: ReviewAnswer) -> None:
        self.answer = answer
        super().__init__(answer.refusal)


class Path(StrEnum):
    """Where the webhook configurations send reviews."""

    MUTATE_POD = "/mutate-pod"
    VALIDATE_POD = "/validate-pod"
    VALIDATE_OBJECT = "/validate-object"
    VALIDATE_EVICTION = "/validate-eviction"


class _Kind(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class ReviewRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Of an AdmissionRequest what matters here."""

    uid: str
    kind: _Kind = _Kind()
    operation: str = ""
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    user_info: msgspec.Raw = msgspec.Raw(b"{}")
    dry_run: bool | None = None


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: ReviewRequest | None = None


class ReviewAnswer(msgspec.Struct, frozen=True):
    """A verdict: `refusal` is empty where the object is let in; `patch` is RFC 6902, `steps` say how it came about.

    `code` is the HTTP status of a refusal.
    """

    request: ReviewRequest
    refusal: str = ""
    warnings: tuple[str, ...] = ()
    patch: tuple[dict[str, Any], ...] = ()
    steps: tuple[MutationStep, ...] = ()
    code: int = FORBIDDEN

    def encoded(self) -> bytes:
        """As the API server reads it."""
        response: dict[str, Any] = {"uid": self.request.uid, "allowed": not self.refusal}
        if self.refusal:
            response["status"] = {"code": self.code, "reason": _REASONS[self.code], "message": self.refusal}
        if self.warnings:
            response["warnings"] = [text[:_LONGEST_WARNING] for text in self.warnings[:_MOST_WARNINGS]]
        if self.patch:
            response |= {"patchType": "JSONPatch", "patch": b64encode(msgspec.json.encode(self.patch)).decode()}
        if self.steps:
            response["auditAnnotations"] = {"steps": "; ".join(map(told, self.steps))[:_LONGEST_NOTE]}
        return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": response})


def told(step: MutationStep) -> str:
    """A step in words: `batch: ProfileApplied`, with what it did."""
    subject = f"{step.profile}: " if step.profile else ""
    return f"{subject}{step.reason.value}" + (f" ({step.detail})" if step.detail else "")


_LOOKED_AT: Mapping[Path, tuple[str, ...]] = {
    Path.MUTATE_POD: ("",),
    Path.VALIDATE_POD: ("", "resize"),
    Path.VALIDATE_OBJECT: ("",),
}
"""Sub-resources by path: a resize changes requests that were checked when the pod was made."""


class Reviewer:
    """Answers from what is known of the cluster, without waiting for anything; `draw` gives 0 to 99 at random.

    Evictions wait for the pod they are about, and are answered by `evictions`.
    """

    def __init__(
        self,
        surroundings: CheckContext,
        mutation: MutationPolicy,
        rules: PodRules,
        draw: Callable[[], int] = lambda: random.randrange(DRAWS),
    ) -> None:
        self._surroundings = surroundings
        self._mutation = mutation
        self._rules = rules
        self._draw = draw
        self._answers: Mapping[Path, Callable[[ReviewRequest], ReviewAnswer]] = {
            Path.MUTATE_POD: self._mutate_pod,
            Path.VALIDATE_POD: self._validate_pod,
            Path.VALIDATE_OBJECT: self._validate_object,
        }

    def answer(self, path: Path, request: ReviewRequest) -> ReviewAnswer:
        """Raises Malformed where the request holds no object of the kind it speaks of."""
        deleted = request.operation == "DELETE" and path is Path.VALIDATE_OBJECT
        if not (deleted or request.operation in ("CREATE", "UPDATE")) or request.sub_resource not in _LOOKED_AT[path]:
            return ReviewAnswer(request)
        try:
            return self._validate_deletion(request) if deleted else self._answers[path](request)
        except RecursionError:
            return _too_deep(request)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Malformed(f"request.object: {error}") from error

    def _mutate_pod(self, request: ReviewRequest) -> ReviewAnswer:
        if request.kind.kind != "Pod":
            return unknown(request)
        pod = msgspec.json.decode(request.object, type=dict[str, Any])
        # What a pod asks for is settled when it is made, and so is what admission makes of it.
        if request.operation != "CREATE" or self._exempt(request.namespace, msgspec.convert(pod, Pod, strict=False)):
            return ReviewAnswer(request)
        return _mutated(request, pod, created(pod, self._facts(request.namespace), self._mutation, merge_pod))

    def _facts(self, namespace: str) -> PodFacts:
        known = self._surroundings
        return PodFacts(known.profiles(), known.namespace_labels(namespace), known.classes(), self._draw())

    def _validate_pod(self, request: ReviewRequest) -> ReviewAnswer:
        if request.kind.kind != "Pod":
            return unknown(request)
        pod = msgspec.json.decode(request.object, type=Pod, strict=False)
        if self._exempt(request.namespace, pod):
            return ReviewAnswer(request)
        old = msgspec.json.decode(request.old_object, type=Pod | None, strict=False)
        before = claims(old) if old is not None and request.operation == "UPDATE" else None
        try:
            found = violations(claims(pod), before, self._rules)
        except ConfigurationFault as fault:
            found = (str(fault),)
        return ReviewAnswer(request, "; ".join(found), () if found else pod_warnings.told(pod, old, self._queues()))

    def _exempt(self, namespace: str, pod: Pod) -> bool:
        """A mirror says what a kubelet runs already: neither a change nor a refusal could alter that."""
        return namespace in self._rules.excluded_namespaces or _MIRROR in (pod.metadata.annotations or {})

    def _validate_deletion(self, request: ReviewRequest) -> ReviewAnswer:
        found = check_deleted(request.kind.group, request.kind.kind, bytes(request.old_object), self._surroundings)
        return ReviewAnswer(request) if found is None else ReviewAnswer(request, "; ".join(found.refusals))

    def _validate_object(self, request: ReviewRequest) -> ReviewAnswer:
        old = bytes(request.old_object) if request.operation == "UPDATE" else None
        found = check(request.kind.group, request.kind.kind, bytes(request.object), old, self._surroundings)
        if found is None and not holds(request.kind.group, request.kind.kind):
            return unknown(request)
        found = found or CheckResult()
        template = template_of(request.kind.group, request.kind.kind, bytes(request.object), request.namespace)
        told = self._of_template(template, request.namespace) if template else ()
        return ReviewAnswer(request, "; ".join(found.refusals), (*found.warnings, *told))

    def _of_template(self, template: Template, namespace: str) -> tuple[str, ...]:
        """What the pods made of it would be told, or refused for. A profile that takes only some pods is left out."""
        written = msgspec.convert(template.pod, Pod, strict=False)
        if self._exempt(namespace, written):
            return ()
        facts = msgspec.structs.replace(self._facts(namespace), draw=DRAWS - 1)
        if absent := self._unknown_class(template.pod["spec"]):
            fix = f"create it, or correct {template.place}.spec.priorityClassName"
            return (f"{template.where}: its pods are refused: no PriorityClass with name {absent} was found; {fix}",)
        pod = defaulted(template.pod, self._priority(template.pod["spec"]))
        mutation = created(pod, facts, self._mutation, merge_pod)
        made = msgspec.convert(mutation.pod, Pod, strict=False)
        try:
            found = [mutation.refusal] if mutation.refusal else violations(claims(made), None, self._rules)
            told = pod_warnings.told_of_template(written, template.where, template.place, self._queues())
            advice = () if found else pod_warnings.advice(made, template.where)
        except ConfigurationFault as fault:
            found, told, advice = [str(fault)], (), ()
        return (*(f"{template.where}: its pods are refused: {each}" for each in found), *told, *advice)

    def _queues(self) -> Collection[str] | None:
        """The names of all queues; None while they are not known."""
        known = self._surroundings.queues()
        return None if known is None else {DEFAULT_QUEUE, *known, *self._surroundings.local_queues()}

    def _unknown_class(self, spec: Mapping[str, Any]) -> str:
        """The API server refuses such pods before it asks anybody; empty where the class is there, or none is named."""
        name = spec.get("priorityClassName") or ""
        return "" if name in self._surroundings.classes() else str(name)

    def _priority(self, spec: Mapping[str, Any]) -> int | None:
        """Of the pod's class, as Kubernetes looks it up; None where there is no such class."""
        classes, name = self._surroundings.classes(), spec.get("priorityClassName")
        found = classes.get(name) if name else next((each for each in classes.values() if each.global_default), None)
        return found.value if found else None


def read(body: bytes) -> ReviewRequest:
    """The question. Raises Malformed, and TooDeep where it can still be answered."""
    try:
        review = msgspec.json.decode(body, type=_Review)
    except RecursionError as error:
        found = _HEAD.search(body[:_HEAD_BYTES])
        if found is None:
            raise Malformed("no AdmissionReview: nested too deep") from error
        uid, kind = ((text or b"").decode(errors="replace") for text in found.groups())
        raise TooDeep(_too_deep(ReviewRequest(uid, _Kind(kind=kind)))) from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise Malformed(f"no AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise Malformed(f"expected AdmissionReview of {API_VERSION}, got {review.kind!r} of {review.api_version!r}")
    if review.request is None or not review.request.uid:
        raise Malformed("the review has no request with a uid")
    return review.request


def _too_deep(request: ReviewRequest) -> ReviewAnswer:
    name = f" {request.namespace}/{request.name}".rstrip("/").replace(" /", " ")
    return ReviewAnswer(request, str(too_deep(f"{request.kind.kind or 'object'}{name}")))


def _mutated(request: ReviewRequest, pod: dict[str, Any], mutation: Mutation) -> ReviewAnswer:
    notes = [step for step in mutation.steps if step.reason in _TOLD]
    warnings = tuple(f"profile {step.profile}: {step.detail or words(step.reason)}" for step in notes)
    patch = () if mutation.refusal else tuple(difference(pod, mutation.pod))
    return ReviewAnswer(request, mutation.refusal, warnings, patch, mutation.steps)


def unknown(request: ReviewRequest) -> ReviewAnswer:
    """A rule of a webhook configuration that sends what nobody asked for must not stop anybody."""
    return ReviewAnswer(
        request, warnings=(f"sublet-admission does not check {request.kind.kind or 'objects without kind'}",)
    )

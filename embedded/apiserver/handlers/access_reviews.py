"""Questions about permissions, which `kubectl auth can-i` and other servers ask: answered, and not kept.

Sources: kubernetes `pkg/registry/authorization`, `pkg/apis/authorization/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value
from embedded.apiserver.apimachinery.objects import Object, dig, ensure
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.authorization.rbac import Rbac
from embedded.apiserver.handlers.write_options import write_options
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.attributes import Attributes, Authorizer
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.user_info import UserInfo
from embedded.apiserver.serialization.request_body import body_of

_GROUP, _VERSION, _CREATE = "authorization.k8s.io", "v1", ("create",)
LOCAL_SUBJECT_REVIEWS = ResourceType(
    _GROUP, _VERSION, "localsubjectaccessreviews", "LocalSubjectAccessReview", True, verbs=_CREATE
)
SELF_REVIEWS = ResourceType(
    _GROUP, _VERSION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=_CREATE
)
SELF_RULES_REVIEWS = ResourceType(
    _GROUP, _VERSION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", False, verbs=_CREATE
)
SUBJECT_REVIEWS = ResourceType(_GROUP, _VERSION, "subjectaccessreviews", "SubjectAccessReview", False, verbs=_CREATE)
ACCESS_REVIEWS = (LOCAL_SUBJECT_REVIEWS, SELF_REVIEWS, SELF_RULES_REVIEWS, SUBJECT_REVIEWS)


class AccessReviews:
    """Answers for all of them."""

    def __init__(self, resources: Resources, authorizer: Authorizer, rbac: Rbac) -> None:
        self._resources = resources
        self._authorizer = authorizer
        self._rbac = rbac

    def create(self, target: Target, request: Request) -> Response:
        """The review with its status; raises 400 or 422 for one that asks nothing sensible."""
        if target.name:
            raise status.unknown_path()
        if request.method != "POST" or (target.rtype.namespaced and not target.namespace):
            raise status.method_not_allowed()
        check_options(request)
        rtype, options = target.rtype, write_options(request)
        review = self._resources.accepted(rtype, body_of(request, rtype), options)
        review |= {"apiVersion": rtype.api_version, "kind": rtype.kind}
        if target.namespace:
            ensure(review, "metadata").setdefault("namespace", target.namespace)
        if rtype is SELF_RULES_REVIEWS:
            review["status"] = self._rules(review, request.user)
        else:
            review["status"] = self._reviewed(target, review, request.user)
        return answer(review, 201, options.warnings)

    def _reviewed(self, target: Target, review: Object, asker: UserInfo) -> Object:
        spec = review.get("spec") or {}
        if errors := list(_errors(target.rtype, review, spec)):
            raise status.invalid(target.rtype, "", errors)
        if target.namespace and dig(review, "metadata.namespace", "") != target.namespace:
            why = f"spec.resourceAttributes.namespace must match namespace: {target.namespace}"
            raise status.bad_request(why)
        user = asker if target.rtype is SELF_REVIEWS else _subject(spec)
        decision = self._authorizer.decide(_attributes(user, spec))
        return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}

    def _rules(self, review: Object, user: UserInfo) -> Object:
        namespace = str(dig(review, "spec.namespace") or "")
        if not namespace:
            raise status.bad_request("no namespace on request")
        rules, faults = self._rbac.rules_for(user, namespace)
        found: Object = {
            "resourceRules": [rule.shown for rule in rules if rule.resources],
            "nonResourceRules": [rule.shown for rule in rules if rule.urls],
            "incomplete": bool(user.node),
        }
        if user.node:
            faults = "node authorizer does not support user rule resolution" + (f", {faults}" if faults else "")
        return found | ({"evaluationError": faults} if faults else {})


def _subject(spec: Object) -> UserInfo:
    extra = {key: tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return UserInfo(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), extra)


def _attributes(user: UserInfo, spec: Object) -> Attributes:
    paths, found = spec.get("nonResourceAttributes"), spec.get("resourceAttributes") or {}
    if paths is not None:
        return Attributes(user, paths.get("verb") or "", path=paths.get("path") or "")
    keys = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    words = {key: str(found.get(key) or "") for key in keys}
    return Attributes(user, **words, field_selector=_selector(found.get("fieldSelector") or {}))


def _selector(fields: Object) -> str:
    equal = (term for term in fields.get("requirements") or () if term.get("operator") == "In")
    terms = [f"{term['key']}={term['values'][0]}" for term in equal if len(term.get("values") or ()) == 1]
    return str(fields.get("rawSelector") or ",".join(terms))


def _errors(rtype: ResourceType, review: Object, spec: Object) -> Iterator[FieldError]:
    wanted, paths = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wanted is not None and paths is not None:
        why = "cannot be specified in combination with resourceAttributes"
        yield bad_value("spec.nonResourceAttributes", paths, why)
    if wanted is None and paths is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield bad_value("spec.resourceAttributes", None, why)
    if rtype is not SELF_REVIEWS and not spec.get("user") and not spec.get("groups"):
        yield bad_value("spec.user", "", "at least one of user or group must be specified")
    told = {key: value for key, value in (review.get("metadata") or {}).items() if value and key != "managedFields"}
    if rtype is LOCAL_SUBJECT_REVIEWS:
        told.pop("namespace", None)
    if told:
        yield bad_value("metadata", told, "must be empty")
    if rtype is LOCAL_SUBJECT_REVIEWS:
        yield from _local_errors(review, wanted, paths)


def _local_errors(review: Object, wanted: Object | None, paths: Object | None) -> Iterator[FieldError]:
    namespace = dig(review, "metadata.namespace", "")
    if wanted is not None and (wanted.get("namespace") or "") != namespace:
        path = "spec.resourceAttributes.namespace"
        yield bad_value(path, wanted.get("namespace") or "", "must match metadata.namespace")
    if paths is not None:
        yield bad_value("spec.nonResourceAttributes", paths, "disallowed on this kind of request")

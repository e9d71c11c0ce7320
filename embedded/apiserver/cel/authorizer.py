"""The `authorizer` of CEL: whether somebody may do something else than what is asked for here.

https://kubernetes.io/docs/reference/using-api/cel/#kubernetes-authorizer-library
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.cel.functions import Function
from embedded.apiserver.cel.messages import Authorizer as AuthorizerMessage
from embedded.apiserver.cel.messages import Decision, GroupCheck, PathCheck, ResourceCheck
from embedded.apiserver.request.attributes import Attributes, Authorizer
from embedded.apiserver.request.user_info import AUTHENTICATED, UserInfo


@dataclass(frozen=True, slots=True)
class AuthorizerContext:
    """Who asks, and who decides."""

    user: UserInfo
    authorizer: Authorizer


# A function gets its arguments from the engine and nothing else, while who decides belongs to one server.
_ASKING: ContextVar[AuthorizerContext] = ContextVar("asking")


@contextmanager
def asking(who: AuthorizerContext) -> Iterator[None]:
    """Whom the checks within are about."""
    token = _ASKING.set(who)
    try:
        yield
    finally:
        _ASKING.reset(token)


OF_REQUEST = AuthorizerMessage()
"""The value of the name `authorizer`."""


def resource_check(group: str, version: str, resource: str, subresource: str, namespace: str, name: str) -> Any:
    """The value of the name `authorizer.requestResource`."""
    return ResourceCheck(
        group=group, version=version, resource=resource, subresource=subresource, namespace=namespace, name=name
    )


def _user(account: str) -> UserInfo:
    """Of a service account as `namespace:name`, or of the one who asks."""
    if not account:
        return _ASKING.get().user
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.partition(':')[0]}", AUTHENTICATED)
    return UserInfo(f"system:serviceaccount:{account}", groups=groups)


def _decided(attributes: Attributes) -> Any:
    found = _ASKING.get().authorizer.decide(attributes)
    return Decision(allowed=found.allowed, reason=found.reason)


def _check_path(check: Any, verb: str) -> Any:
    return _decided(Attributes(_user(check.account), verb, path=check.path))


def _check_resource(check: Any, verb: str) -> Any:
    attributes = Attributes(
        user=_user(check.account),
        verb=verb,
        group=check.group,
        version=check.version or "*",
        resource=check.resource,
        subresource=check.subresource,
        namespace=check.namespace,
        name=check.name,
        field_selector=check.field_selector,
    )
    return _decided(attributes)


def _path(authorizer: Any, path: str) -> Any:
    return PathCheck(account=authorizer.account, path=_given("path", path))


def _resource(check: Any, resource: str) -> Any:
    return ResourceCheck(account=check.account, group=check.group, resource=_given("resource", resource))


def _given(what: str, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{what} must not be empty")
    return text


def _narrowed(field: str) -> Any:
    def narrow(check: Any, value: str) -> Any:
        found = ResourceCheck()
        found.CopyFrom(check)
        setattr(found, field, value)
        return found

    return narrow


_RESOURCE = ("ResourceCheck", "string")
FUNCTIONS = (
    Function("path", ("Authorizer", "string"), "PathCheck", _path),
    Function(
        "group", ("Authorizer", "string"), "GroupCheck", lambda who, group: GroupCheck(account=who.account, group=group)
    ),
    Function(
        "serviceAccount",
        ("Authorizer", "string", "string"),
        "Authorizer",
        lambda _, namespace, name: AuthorizerMessage(account=f"{namespace}:{name}"),
    ),
    Function("resource", ("GroupCheck", "string"), "ResourceCheck", _resource),
    Function("subresource", _RESOURCE, "ResourceCheck", _narrowed("subresource")),
    Function("namespace", _RESOURCE, "ResourceCheck", _narrowed("namespace")),
    Function("name", _RESOURCE, "ResourceCheck", _narrowed("name")),
    Function("fieldSelector", _RESOURCE, "ResourceCheck", _narrowed("field_selector")),
    Function("labelSelector", _RESOURCE, "ResourceCheck", lambda check, _: check),
    Function("check", ("PathCheck", "string"), "Decision", _check_path),
    Function("check", _RESOURCE, "Decision", _check_resource),
    Function("allowed", ("Decision",), "bool", lambda decision: decision.allowed),
    Function("reason", ("Decision",), "string", lambda decision: decision.reason),
    Function("errored", ("Decision",), "bool", lambda _: False),
    Function("error", ("Decision",), "string", lambda _: ""),
)

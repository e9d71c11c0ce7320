"""What a request wants to do, and whoever decides whether its user may.

A request becomes `Attributes` by its method, path and query alone, as kube-apiserver's RequestInfo does; the words of
refusals are those of its `endpoints/handlers/responsewriters`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from embedded.apiserver.apimachinery.objects import quoted
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.target import split_path
from embedded.apiserver.request.user_info import UserInfo

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
# Without a backslash anywhere, so that no comma is part of a value.
_PINNED_NAME = re.compile(r"(?:[^\\]*,)?metadata\.name==?([^,\\=!/%]+)(?:,[^\\]*)?")


@dataclass(frozen=True, slots=True)
class Attributes:
    """Who wants to do what to which resource; of requests for no resource only `verb` and `path` are set."""

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""

    @property
    def combined_resource(self) -> str:
        """The resource as rules name it: `pods`, or `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it may be done; the reason names what allowed it, or what is wrong with the rules."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides. The same attributes get the same decision while no role and no binding changes."""

    def decide(self, attributes: Attributes) -> Decision: ...


class AllowAll:
    """Everybody may do everything."""

    def decide(self, attributes: Attributes) -> Decision:
        return Decision(True)


def attributes_of(request: Request) -> Attributes:
    """What a request wants. Source: kubernetes `apiserver/pkg/endpoints/request/requestinfo.go`."""
    parts = split_path(request.path)
    if not _names_resource(parts):
        return Attributes(request.user, request.method.lower(), path=request.path)
    group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    resource, name, subresource = (*rest, "", "")[:3]
    verb, selector = _VERBS.get(request.method, ""), ""
    if not name:
        verb, selector = _of_collection(request, verb), request.query.get("fieldSelector", "")
        if selector and (pinned := _PINNED_NAME.fullmatch(selector)):
            name = pinned[1]
    return Attributes(
        request.user, verb, group, version, resource, subresource, namespace, name, field_selector=selector
    )


def _names_resource(parts: list[str]) -> bool:
    return len(parts) >= {"api": 3, "apis": 4}.get(parts[0], len(parts) + 1)


def _of_collection(request: Request, verb: str) -> str:
    if verb == "get":
        return "watch" if request.flag("watch") else "list"
    return "deletecollection" if verb == "delete" else verb


def forbidden(attributes: Attributes, reason: str = "") -> StatusError:
    """The refusal of a request that its user may not make."""
    why = _cannot(attributes) + (f": {reason}" if reason else "")
    group_resource = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    if not group_resource:
        return StatusError(403, "Forbidden", f"forbidden: {why}", {})
    named = f'{group_resource} "{attributes.name}"' if attributes.name else group_resource
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    shown = {key: value for key, value in details.items() if value}
    return StatusError(403, "Forbidden", f"{named} is forbidden: {why}", shown)


def _cannot(attributes: Attributes) -> str:
    who = f"User {quoted(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.resource:
        return f"{who} path {quoted(attributes.path)}"
    what = f"{who} resource {quoted(attributes.combined_resource)} in API group {quoted(attributes.group)}"
    where = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{what} {where}"

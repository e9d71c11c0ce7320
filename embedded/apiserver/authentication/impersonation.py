"""Acting as somebody else: the `Impersonate-…` headers, each of which must be allowed by the verb `impersonate`.

Source: kubernetes `apiserver/pkg/endpoints/filters/impersonation`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from embedded.apiserver.apimachinery.status import internal
from embedded.apiserver.request.attributes import Attributes, Authorizer, forbidden
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.user_info import (
    ACCOUNT_USER,
    ACCOUNTS,
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    UserInfo,
)

IMPERSONATE = "impersonate-"
_USER, _GROUP, _UID, _EXTRA = "impersonate-user", "impersonate-group", "impersonate-uid", "impersonate-extra-"
# Between the values of a header that comes several times, which HTTP lets stand in no value.
SEPARATOR = "\n"
_AUTHENTICATION = "authentication.k8s.io"


def impersonated(request: Request, authorizer: Authorizer) -> UserInfo:
    """Whom a request acts as, its own user where it does not say; raises 403, or 500 as upstream for half a request."""
    asked = {name: value for name, value in request.headers.items() if name.startswith(IMPERSONATE)}
    if not asked:
        return request.user
    if not asked.get(_USER):
        raise internal(f"requested {sorted(asked)} without impersonating a user name")
    wanted = UserInfo(asked[_USER], asked.get(_UID, ""), _values(asked.get(_GROUP, "")), dict(_extra(asked)))
    for attributes in _acts(request.user, wanted):
        decision = authorizer.decide(attributes)
        if not decision.allowed:
            raise forbidden(attributes, decision.reason)
    return replace(wanted, groups=_groups_of(wanted))


def _values(text: str) -> tuple[str, ...]:
    return tuple(text.split(SEPARATOR)) if text else ()


def _extra(asked: dict[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, text in sorted(asked.items()):
        if name.startswith(_EXTRA):
            yield unquote(name.removeprefix(_EXTRA)).lower(), _values(text)


def _acts(user: UserInfo, wanted: UserInfo) -> Iterator[Attributes]:
    """What has to be allowed, one thing at a time."""
    account = _account_of(wanted.name)
    if account:
        namespace, name = account
        yield Attributes(user, "impersonate", "", "v1", "serviceaccounts", namespace=namespace, name=name)
    else:
        yield Attributes(user, "impersonate", "", "v1", "users", name=wanted.name)
    for group in wanted.groups:
        yield Attributes(user, "impersonate", "", "v1", "groups", name=group)
    for key, values in wanted.extra.items():
        for value in values:
            yield Attributes(user, "impersonate", _AUTHENTICATION, "v1", "userextras", key, name=value)
    if wanted.uid:
        yield Attributes(user, "impersonate", _AUTHENTICATION, "v1", "uids", name=wanted.uid)


def _account_of(name: str) -> tuple[str, str] | None:
    namespace, colon, account = name.removeprefix(ACCOUNT_USER).partition(":")
    return (namespace, account) if name.startswith(ACCOUNT_USER) and colon and namespace and account else None


def _groups_of(wanted: UserInfo) -> tuple[str, ...]:
    """The groups asked for and, of service accounts where none was, those they have; all but one are authenticated."""
    groups, account = wanted.groups, _account_of(wanted.name)
    if not groups and account:
        groups = (ACCOUNTS, f"{ACCOUNTS}:{account[0]}")
    if wanted.name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    told = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return groups if told else (*groups, AUTHENTICATED)

"""Tokens of service accounts: JSON Web Tokens that hold as long as what they are bound to is there.

Claims and checks are those of kube-apiserver (`pkg/serviceaccount/claims.go`); tokens of 3607 s are not prolonged to a
year, as its `--service-account-extend-token-expiration` does for old clients' sake.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping

import msgspec

from embedded.apiserver.apimachinery.objects import Clock, decode_object, dig, parse_time
from embedded.apiserver.apimachinery.resource_types import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, ResourceType
from embedded.apiserver.authentication.signing_key import ISSUER, SigningKey
from embedded.apiserver.request.user_info import (
    ACCOUNT_USER,
    ACCOUNTS,
    AUTHENTICATED,
    CREDENTIAL,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    UserInfo,
)
from embedded.apiserver.storage.object_store import Record, Store

_LEEWAY_SECONDS = 60  # go-jose's DefaultLeeway: clocks differ, and so a token lasts a minute longer than it says
_REMEMBERED = 4096  # verified tokens: at most one for each pod and program of a large cluster at a time
_LONGEST_BYTES = 16 << 10
_INVALIDATED = "service account token has been invalidated"


class TokenError(Exception):
    """A token that proves nothing; the text is what kube-apiserver tells of it."""


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object as a token names it."""

    name: str
    uid: str = ""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whose token it is, and which object's end is its end too. The node of a pod is told, but does not end it."""

    namespace: str
    serviceaccount: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


class Claims(msgspec.Struct, frozen=True):
    """The payload; times in seconds since the epoch."""

    iss: str
    sub: str
    aud: tuple[str, ...]
    iat: int
    nbf: int
    exp: int
    jti: str
    subject: Subject = msgspec.field(name="kubernetes.io")


class AccountTokens:
    """Issues tokens and tells whose they are, by one server's key and objects.

    `remembered` tokens need not be verified again; whether what they are bound to is there is looked up every time.
    """

    def __init__(self, store: Store, clock: Clock, key: SigningKey, remembered: int = _REMEMBERED) -> None:
        self._store = store
        self._clock = clock
        self._key = key
        self._remembered = remembered
        self._verified: dict[bytes, Claims] = {}

    def issue(self, subject: Subject, audiences: tuple[str, ...], seconds: int) -> tuple[str, int]:
        """A token for these audiences, and when it expires, in seconds since the epoch."""
        now = int(self._clock())
        account = f"{ACCOUNT_USER}{subject.namespace}:{subject.serviceaccount.name}"
        claims = Claims(ISSUER, account, audiences, now, now, now + seconds, str(uuid.uuid4()), subject)
        return self._key.sign(msgspec.json.encode(claims)), claims.exp

    def claims(self, token: bytes) -> Claims | None:
        """What a token says, if this server signed it; whether it still holds is for `authenticator` to tell."""
        if len(token) > _LONGEST_BYTES or token.count(b".") != 2:
            return None
        digest = hashlib.sha256(token).digest()
        found = self._verified.get(digest)
        if found is None and (payload := self._key.payload(token)) is not None:
            found = msgspec.json.decode(payload, type=Claims)
            if len(self._verified) >= self._remembered:
                del self._verified[next(iter(self._verified))]
            self._verified[digest] = found
        return found

    def identity(self, claims: Claims) -> UserInfo:
        """The user of a token that holds at this moment; raises TokenError."""
        self._check_time(claims)
        subject = claims.subject
        self._check_account(subject)
        for rtype, namespace, bound in _bound(subject):
            self._check_bound(rtype, namespace, bound)
        groups = (ACCOUNTS, f"{ACCOUNTS}:{subject.namespace}", AUTHENTICATED)
        return UserInfo(claims.sub, subject.serviceaccount.uid, groups, _extra(claims))

    def _check_time(self, claims: Claims) -> None:
        now = self._clock()
        if now > claims.exp + _LEEWAY_SECONDS:
            raise TokenError("service account token has expired")
        if now < claims.nbf - _LEEWAY_SECONDS:
            raise TokenError("service account token is not valid yet")

    def _check_account(self, subject: Subject) -> None:
        namespace, account = subject.namespace, subject.serviceaccount
        held = self._store.get(SERVICE_ACCOUNTS.id, namespace, account.name)
        if held is None:
            raise TokenError(f'serviceaccounts "{account.name}" not found')
        if held.uid != account.uid:
            raise TokenError(f"service account UID ({held.uid}) does not match claim ({account.uid})")
        if self._went(held):
            raise TokenError(f"service account {namespace}/{account.name} has been deleted")

    def _check_bound(self, rtype: ResourceType, namespace: str, bound: Reference) -> None:
        held = self._store.get(rtype.id, namespace, bound.name)
        if held is not None and held.uid != bound.uid:
            what = rtype.kind.lower()
            raise TokenError(f"{what} UID ({held.uid}) does not match service account {what} ref claim ({bound.uid})")
        if held is None or self._went(held):
            raise TokenError(_INVALIDATED)

    def _went(self, held: Record) -> bool:
        """Whether a deletion has been under way for longer than its grace, which is part of its time stamp."""
        if not held.deleting:
            return False
        moment = parse_time(dig(decode_object(held.body), "metadata.deletionTimestamp"))
        return moment is None or moment < self._clock() - _LEEWAY_SECONDS


def _bound(subject: Subject) -> Iterator[tuple[ResourceType, str, Reference]]:
    """The objects whose end is the token's."""
    if subject.secret is not None:
        yield SECRETS, subject.namespace, subject.secret
    if subject.pod is not None:
        yield PODS, subject.namespace, subject.pod
    elif subject.node is not None:
        yield NODES, "", subject.node


def _extra(claims: Claims) -> Mapping[str, tuple[str, ...]]:
    found = {CREDENTIAL: f"JTI={claims.jti}"}
    if (pod := claims.subject.pod) is not None:
        found |= {POD_NAME: pod.name, POD_UID: pod.uid}
    if (node := claims.subject.node) is not None:
        found |= {NODE_NAME: node.name, NODE_UID: node.uid}
    return {key: (value,) for key, value in found.items() if value}

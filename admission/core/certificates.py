"""Plan of certificates: which authority signs, which are trusted, which certificates are signed again.

An authority is replaced in three steps, so that at no moment a client lacks the one that signed what it is shown: the
next one is published beside the current, then signs, then the one before is dropped. Between two steps all clients
have time to read what was published.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

_DAY = 86_400.0


class CertificatePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long certificates live; each is replaced once two thirds of its life are over."""

    authority_days: Annotated[float, Meta(ge=1, le=3650, description="Life of the certificate authority.")] = 365.0
    server_days: Annotated[float, Meta(gt=0, le=398, description="Life of a server's certificate.")] = 60.0
    settle_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=7 * _DAY,
            description="Time between two steps of an authority's replacement: mounted bundles and certificates must "
            "have reached every pod.",
        ),
    ] = 3600.0
    check_seconds: Annotated[
        float, Meta(gt=0, le=3600, description="How often the leader looks at certificates and webhook configurations.")
    ] = 10.0


class Validity(msgspec.Struct, frozen=True):
    """From when until when a certificate is valid, Unix seconds, and the ids of its own and its signer's key."""

    not_before: float
    not_after: float
    key_id: str
    signer_id: str = ""
    names: tuple[str, ...] = ()

    def valid(self, now: float) -> bool:
        return self.not_before <= now < self.not_after

    def fresh(self, now: float) -> bool:
        """Valid, and not due for its replacement. One from the future was issued by a clock that was wrong."""
        return self.not_before <= now < self.not_before + (self.not_after - self.not_before) * 2 / 3


class Authorities(msgspec.Struct, frozen=True):
    """The one that signs, the next one once it is published, and the one before while it is still trusted.

    `since_seconds` is when the last step was taken, 0 where it is not known; `published` says that clients are told to
    trust just these.
    """

    current: Validity | None = None
    next: Validity | None = None
    previous: Validity | None = None
    since_seconds: float = 0.0
    published: bool = True


class AuthorityStep(StrEnum):
    """What happens to the authorities."""

    KEEP = "keep"
    CREATE = "create"
    PUBLISH_NEXT = "publish next"
    PROMOTE_NEXT = "promote next"
    DROP_PREVIOUS = "drop previous"
    RESTART_WAIT = "restart wait"


def step(now: float, kept: Authorities, leaves: Mapping[str, Validity], policy: CertificatePolicy) -> AuthorityStep:
    """The one step that may be taken now; `leaves` are the server certificates there are.

    An authority that verifies nothing any more is replaced at once, by the next one where there is one: there is
    nobody left whom a hurry could hurt. The wait starts again where nobody knows how long clients have had: what they
    should trust was not published, a server still shows what the authority before signed, the time of the last step is
    not known, or a clock that went back says that it is still to come.
    """
    if kept.current is None or not kept.current.valid(now):
        usable = kept.next is not None and kept.next.valid(now)
        return AuthorityStep.PROMOTE_NEXT if usable else AuthorityStep.CREATE
    if kept.next is None and kept.previous is None:
        return AuthorityStep.KEEP if kept.current.fresh(now) else AuthorityStep.PUBLISH_NEXT
    shown = kept.previous and any(leaf.signer_id == kept.previous.key_id for leaf in leaves.values())
    if not kept.published or shown or not 0 < kept.since_seconds <= now:
        return AuthorityStep.RESTART_WAIT
    if now - kept.since_seconds < policy.settle_seconds:
        return AuthorityStep.KEEP
    if kept.previous is not None:
        return AuthorityStep.DROP_PREVIOUS
    # A next authority that its wait outlived, or that a wrong clock made, must not sign.
    return AuthorityStep.PROMOTE_NEXT if kept.next is not None and kept.next.valid(now) else AuthorityStep.PUBLISH_NEXT


def to_issue(
    now: float, signer: Validity, wanted: Mapping[str, tuple[str, ...]], kept: Mapping[str, Validity]
) -> tuple[str, ...]:
    """Which of the wanted server certificates (name → the hosts it is for) have to be signed again, by name."""
    return tuple(name for name, hosts in sorted(wanted.items()) if not _holds(now, signer, hosts, kept.get(name)))


def _holds(now: float, signer: Validity, hosts: tuple[str, ...], leaf: Validity | None) -> bool:
    return (
        leaf is not None
        and leaf.fresh(now)
        and leaf.signer_id == signer.key_id
        and sorted(leaf.names) == sorted(hosts)
        and leaf.not_after <= signer.not_after
    )

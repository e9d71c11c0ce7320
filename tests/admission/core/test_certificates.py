"""What is done about certificates, moment by moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from admission.core.certificates import Authorities, AuthorityStep, CertificatePolicy, Validity, step, to_issue

DAY = 86_400.0
NOW = 1_000 * DAY
POLICY = CertificatePolicy(authority_days=90, server_days=30, settle_seconds=3600)


def life(name: str, age_days: float = 10, days: float = 90, **more: Any) -> Validity:
    """Issued `age_days` ago for `days`."""
    return Validity(NOW - age_days * DAY, NOW + (days - age_days) * DAY, name, **more)


FRESH, DUE, DEAD, EARLY = life("A"), life("A", 61), life("A", 91), life("A", -1)
NEXT = life("B", 0.1)
WAITED, WAITING = NOW - 3601, NOW - 3599

STEPS: dict[str, tuple[Authorities, AuthorityStep]] = {
    "nothing there": (Authorities(), AuthorityStep.CREATE),
    "fresh": (Authorities(FRESH), AuthorityStep.KEEP),
    "two thirds over": (Authorities(DUE), AuthorityStep.PUBLISH_NEXT),
    "expired": (Authorities(DEAD), AuthorityStep.CREATE),
    "of the future": (Authorities(EARLY), AuthorityStep.CREATE),
    "expired, with a next one": (Authorities(DEAD, NEXT, None, NOW), AuthorityStep.PROMOTE_NEXT),
    "gone, with a next one": (Authorities(None, NEXT, None, NOW), AuthorityStep.PROMOTE_NEXT),
    "expired, and so is the next one": (Authorities(DEAD, DEAD, None, NOW), AuthorityStep.CREATE),
    "published a moment ago": (Authorities(DUE, NEXT, None, WAITING), AuthorityStep.KEEP),
    "published long enough": (Authorities(DUE, NEXT, None, WAITED), AuthorityStep.PROMOTE_NEXT),
    "published but not told": (Authorities(DUE, NEXT, None, WAITED, published=False), AuthorityStep.RESTART_WAIT),
    "nobody knows since when": (Authorities(DUE, NEXT, None, 0.0), AuthorityStep.RESTART_WAIT),
    "the clock went back": (Authorities(DUE, NEXT, None, NOW + 60), AuthorityStep.RESTART_WAIT),
    "the next one expired meanwhile": (Authorities(FRESH, DEAD, None, WAITED), AuthorityStep.PUBLISH_NEXT),
    "promoted a moment ago": (Authorities(NEXT, None, FRESH, WAITING), AuthorityStep.KEEP),
    "promoted long enough": (Authorities(NEXT, None, FRESH, WAITED), AuthorityStep.DROP_PREVIOUS),
    "promoted but not told": (Authorities(NEXT, None, FRESH, WAITED, published=False), AuthorityStep.RESTART_WAIT),
    "the bundle of a fresh one is not told": (Authorities(FRESH, published=False), AuthorityStep.KEEP),
}


@pytest.mark.parametrize(("kept", "wanted"), STEPS.values(), ids=STEPS)
def test_step(kept: Authorities, wanted: AuthorityStep) -> None:
    """One step at a time, and each only when everybody had time for the one before."""
    assert step(NOW, kept, {}, POLICY) is wanted


def test_an_authority_is_trusted_as_long_as_a_server_shows_what_it_signed() -> None:
    """A certificate that could not be written keeps the authority that signed the old one."""
    kept = Authorities(NEXT, None, FRESH, WAITED)
    assert step(NOW, kept, {"x": life("leaf", signer_id="A")}, POLICY) is AuthorityStep.RESTART_WAIT
    assert step(NOW, kept, {"x": life("leaf", signer_id="B")}, POLICY) is AuthorityStep.DROP_PREVIOUS


HOSTS = ("x", "x.ns.svc")
LEAF = Validity(NOW - DAY, NOW + 29 * DAY, "leaf", "A", HOSTS)
LEAVES: dict[str, tuple[Validity | None, bool]] = {
    "fresh": (LEAF, False),
    "missing": (None, True),
    "two thirds over": (msgspec.structs.replace(LEAF, not_before=NOW - 61 * DAY), True),
    "expired": (msgspec.structs.replace(LEAF, not_before=NOW - 31 * DAY, not_after=NOW - DAY), True),
    "of the future": (msgspec.structs.replace(LEAF, not_before=NOW + 1), True),
    "signed by another": (msgspec.structs.replace(LEAF, signer_id="B"), True),
    "for other names": (msgspec.structs.replace(LEAF, names=("x",)), True),
    "names in another order": (msgspec.structs.replace(LEAF, names=tuple(reversed(HOSTS))), False),
    "outlives its authority": (msgspec.structs.replace(LEAF, not_after=FRESH.not_after + 1), True),
}


@pytest.mark.parametrize(("leaf", "issued"), LEAVES.values(), ids=LEAVES)
def test_to_issue(leaf: Validity | None, issued: bool) -> None:
    """What is not fully what it should be is signed again."""
    kept = {} if leaf is None else {"x-tls": leaf}
    assert to_issue(NOW, FRESH, {"x-tls": HOSTS}, kept) == (("x-tls",) if issued else ())


def test_at_no_moment_a_client_lacks_the_authority_of_what_it_is_shown() -> None:
    """Two years, looked at each hour, with clients that read what is published up to half an hour late."""
    policy = CertificatePolicy(authority_days=90, server_days=30, settle_seconds=3600)
    kept, leaf, names = Authorities(), None, iter(range(1000))
    trusted_before: set[str] = set()
    shown_before = ""
    for hour in range(2 * 365 * 24):
        now = NOW + hour * 3600
        leaves: Mapping[str, Validity] = {"x": leaf} if leaf else {}
        taken = step(now, kept, leaves, policy)
        fresh = (
            Validity(now, now + 90 * DAY, str(next(names)))
            if taken in (AuthorityStep.CREATE, AuthorityStep.PUBLISH_NEXT)
            else None
        )
        kept = after(taken, kept, fresh, now)
        assert kept.current is not None and kept.current.valid(now)
        if to_issue(now, kept.current, {"x": HOSTS}, leaves):
            leaf = Validity(now, now + 30 * DAY, "leaf", kept.current.key_id, HOSTS)
        assert leaf is not None and leaf.valid(now)
        trusted = {each.key_id for each in (kept.current, kept.next, kept.previous) if each}
        if hour:
            assert leaf.signer_id in trusted_before, "a client that reads late does not know the new signer"
            assert shown_before in trusted, "a server that reads late shows what is not trusted any more"
        trusted_before, shown_before = trusted, leaf.signer_id
    assert next(names) > 10


def after(taken: AuthorityStep, kept: Authorities, fresh: Validity | None, now: float) -> Authorities:
    match taken:
        case AuthorityStep.CREATE:
            return Authorities(fresh, since_seconds=now)
        case AuthorityStep.PUBLISH_NEXT:
            return msgspec.structs.replace(kept, next=fresh, since_seconds=now)
        case AuthorityStep.PROMOTE_NEXT:
            return Authorities(kept.next, None, kept.current, now)
        case AuthorityStep.DROP_PREVIOUS:
            return Authorities(kept.current, since_seconds=now)
    return kept

"""Certificates hold what they say, and harm is noticed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from kube.x509 import Authority, KeyPair, described, described_certificate, request

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
CA = Authority.create("ca", NOW, 30 * DAY)


def test_an_authority_signs_for_names_and_addresses() -> None:
    """What is issued names its signer and its hosts, and was valid an hour ago already."""
    found = described(CA.issue("web", ("web.ns.svc", "127.0.0.1"), NOW, 7 * DAY))
    assert (found.signer_id, found.names) == (described(CA.pair).key_id, ("web.ns.svc", "127.0.0.1"))
    assert (found.not_before, found.not_after) == (NOW.timestamp() - 3600, (NOW + 7 * DAY).timestamp())


def test_nothing_outlives_its_authority() -> None:
    """A certificate that is believed no longer would be shown all the same."""
    assert described(CA.issue("x", ("x",), NOW, 365 * DAY)).not_after == described(CA.pair).not_after


def test_an_authority_that_was_kept_signs_on() -> None:
    """The same key, under the same name."""
    again = Authority.load(CA.pair)
    assert again.pair == CA.pair
    assert described(again.issue("x", ("x",), NOW, DAY)).signer_id == described_certificate(CA.certificate_pem).key_id


def test_a_request_names_whom_it_is_for() -> None:
    """And is signed with the key that comes with it."""
    pem, key = request("system:node:n1", "system:nodes")
    asked = x509.load_pem_x509_csr(pem)
    assert asked.subject.rfc4514_string() == "CN=system:node:n1,O=system:nodes" and asked.is_signature_valid
    own = serialization.load_pem_private_key(key, None)
    assert isinstance(own, EllipticCurvePrivateKey) and own.public_key() == asked.public_key()


LEAF = CA.issue("x", ("x",), NOW, DAY)
HARMED = {
    "no certificate": KeyPair(b"", LEAF.key),
    "no key": KeyPair(LEAF.certificate, b""),
    "a cut certificate": KeyPair(LEAF.certificate[:100], LEAF.key),
    "a cut key": KeyPair(LEAF.certificate, LEAF.key[:60]),
    "another's key": KeyPair(LEAF.certificate, CA.pair.key),
    "swapped": KeyPair(LEAF.key, LEAF.certificate),
}


@pytest.mark.parametrize("pair", HARMED.values(), ids=HARMED)
def test_harm(pair: KeyPair) -> None:
    """Always a ValueError, never a surprise."""
    with pytest.raises(ValueError):
        described(pair)

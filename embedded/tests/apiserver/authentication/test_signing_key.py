"""The key of service account tokens: what it signs, and where it is kept."""

import json
import stat

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from embedded.apiserver.authentication.signing_key import SigningKey, SigningKeyError


def pem(key):
    kinds = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*kinds)


def test_only_its_own_signatures_are_believed():
    """Not another key's, not a changed text, not what is no token, and no other algorithm."""
    key, other = SigningKey.new(), SigningKey.new()
    token = key.sign(b'{"a": 1}')
    head, _, signature = token.split(".")
    changed = f"{head}.{jwt.utils.base64url_encode(b'{}').decode()}.{signature}"
    unsigned = jwt.encode({"a": 1}, "", algorithm="none")
    by_secret = jwt.encode({"a": 1}, "x" * 32, algorithm="HS256")
    assert key.payload(token.encode()) == b'{"a": 1}'
    strangers = (other.sign(b'{"a": 1}'), changed, unsigned, by_secret, "x", "a.b.c", "..")
    assert [key.payload(each.encode()) for each in strangers] == [None] * len(strangers)
    assert key.payload(b"\x80.b.c") is None


def test_others_can_check_with_the_published_key():
    """The key set alone is enough, and the token says which key of it."""
    key = SigningKey.new()
    token = key.sign(json.dumps({"a": 1}).encode())
    (published,) = jwt.PyJWKSet.from_dict(key.key_set()).keys
    assert jwt.get_unverified_header(token)["kid"] == published.key_id == key.id
    assert jwt.decode(token, published, algorithms=["ES256"]) == {"a": 1}


def test_a_kept_key_is_the_same_afterwards(tmp_path):
    """Its owner alone may read it."""
    file = tmp_path / "key"
    token = SigningKey.kept(file).sign(b"x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert SigningKey.kept(file).payload(token.encode()) == b"x"


UNUSABLE = {
    "no key": b"nothing",
    "of another curve": pem(ec.generate_private_key(ec.SECP384R1())),
    "of another kind": pem(ed25519.Ed25519PrivateKey.generate()),
}


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
def test_a_file_without_such_a_key_is_an_error(tmp_path, content):
    """It is never overwritten: tokens may depend on it."""
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(SigningKeyError, match=str(file)):
        SigningKey.kept(file)
    assert file.read_bytes() == content


def test_a_key_file_that_is_a_link_is_an_error(tmp_path):
    """Neither another's key is believed nor a file made where the link leads."""
    SigningKey.kept(tmp_path / "other")
    for target in ("other", "absent"):
        (tmp_path / "key").symlink_to(target)
        with pytest.raises(SigningKeyError, match="not followed"):
            SigningKey.kept(tmp_path / "key")
        (tmp_path / "key").unlink()
    assert not (tmp_path / "absent").exists()

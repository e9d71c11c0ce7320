"""The key that service account tokens are signed with.

SigningKeyError: the key file cannot be used; the message says why.
"""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from embedded.apiserver.apimachinery.objects import Object
from embedded.fault import ConfigurationFault
from embedded.own_files import open_own, write_private

ISSUER = "https://kubernetes.default.svc.cluster.local"
ALGORITHM = "ES256"
_JWS = jwt.PyJWS(algorithms=[ALGORITHM])


class SigningKeyError(ValueError):
    """The key file is unreadable or holds no P-256 private key."""


class SigningKey:
    """A P-256 key pair. Its id is the digest of the public half, as kube-apiserver names its keys."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._private = key
        self._public = key.public_key()
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()

    @classmethod
    def new(cls) -> SigningKey:
        """A key that is known to this process alone: its tokens end with it."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def kept(cls, path: Path) -> SigningKey:
        """The key in a PEM file that its owner alone may read; made when absent. Raises SigningKeyError."""
        try:
            if not os.path.lexists(path):
                write_private(path, cls.new()._pem())
            with os.fdopen(open_own(path, os.O_RDONLY), "rb") as file:
                found = serialization.load_pem_private_key(file.read(), password=None)
        except ConfigurationFault as fault:
            raise SigningKeyError(str(fault)) from None
        except (OSError, ValueError, TypeError) as error:
            raise SigningKeyError(f"{path}: cannot be used as the key of service account tokens: {error}") from None
        if not isinstance(found, ec.EllipticCurvePrivateKey) or not isinstance(found.curve, ec.SECP256R1):
            raise SigningKeyError(f"{path}: holds another kind of key than EC P-256")
        return cls(found)

    def sign(self, payload: bytes) -> str:
        """A JSON Web Signature of these bytes, in compact form."""
        return _JWS.encode(payload, self._private, algorithm=ALGORITHM, headers={"kid": self.id, "typ": None})

    def payload(self, token: bytes) -> bytes | None:
        """What a token that this key signed says; None for anything else."""
        try:
            found: bytes = _JWS.decode(token, self._public, algorithms=[ALGORITHM])
        except jwt.InvalidTokenError:
            return None
        return found

    def key_set(self) -> Object:
        """The public key as a JSON Web Key Set."""
        public: dict[str, Any] = ECAlgorithm.to_jwk(self._public, as_dict=True)
        return {"keys": [{"use": "sig", "kid": self.id, "alg": ALGORITHM, **public}]}

    def _pem(self) -> bytes:
        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

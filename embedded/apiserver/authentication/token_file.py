"""Who may talk to the server: bearer tokens and the Host header."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509

from embedded.apiserver.request.user_info import UserInfo, known_user

_LOCAL_HOSTS = frozenset(
    {"127.0.0.1", "localhost", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
)


class TokenFileError(ValueError):
    """The token file cannot be used; the message says which line is wrong."""


class TokenFile:
    """Bearer tokens that do not change while the server runs, and whose they are."""

    def __init__(self, users: Mapping[str, UserInfo]) -> None:
        # By digest: how far a wrong guess gets tells nothing about the tokens.
        self._users = {_digest(token.encode()): user for token, user in users.items()}

    @classmethod
    def read(cls, path: Path) -> TokenFile:
        """Read lines of `token,user,uid,"group1,group2"`, the last two optional.

        Every user is in `system:authenticated`, those named `system:node:…` in `system:nodes` too. Raises
        TokenFileError on an unreadable, malformed or empty file.
        """
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(f"{path}: cannot be read: {error}") from None
        users = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            token, user, uid, groups = _columns(line)
            if not (token and user):
                raise TokenFileError(f"{path}: line {number} is not of the form token,user,uid,groups")
            users[token] = known_user(user, uid, tuple(filter(None, groups.split(","))))
        if not users:
            raise TokenFileError(f"{path}: holds no token")
        return cls(users)

    def user_of(self, token: bytes) -> UserInfo | None:
        return self._users.get(_digest(token))


def _columns(line: str) -> tuple[str, str, str, str]:
    cells = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]
    token, user, uid, groups = (*cells, "", "", "", "")[:4]
    return token, user, uid, ",".join(name.strip() for name in groups.split(","))


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def bearer_token(authorization: str) -> bytes:
    """The token of an Authorization header; empty where it carries none."""
    scheme, _, token = authorization.strip().partition(" ")
    # A header's bytes that are not UTF-8 arrive as surrogates.
    return token.strip().encode(errors="surrogateescape") if scheme.lower() == "bearer" else b""


def is_known_host(header: str, names: frozenset[str] = frozenset()) -> bool:
    """Whether a Host header names this machine: by a local name, or by one of the certificate's.

    A browser tricked by DNS rebinding sends another name.
    """
    host = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    host = host.strip("[]").lower()
    return host in _LOCAL_HOSTS or host in names


def certificate_names(certificate: Path) -> frozenset[str]:
    """The host names and addresses a PEM certificate is made out to; raises OSError or ValueError."""
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(name.value).lower() for name in names)

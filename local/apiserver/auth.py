"""Who may talk to the server: bearer tokens and the Host header."""

import hmac
from collections.abc import Iterable, Mapping
from pathlib import Path

from cryptography import x509

from local.apiserver.identity import AUTHENTICATED, MASTERS, Identity

_LOCAL_HOSTS = frozenset(
    {"127.0.0.1", "localhost", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
)


class TokenFileError(ValueError):
    """The token file cannot be used; the message says which line is wrong."""


class Tokens:
    """Known bearer tokens. In this server every known token may do everything."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = {token.encode(): user for token, user in users.items()}

    @classmethod
    def read(cls, path: Path) -> "Tokens":
        """Read lines of `token,username`; raises TokenFileError on an unreadable, malformed or empty file."""
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenFileError(f"{path}: cannot be read: {error}") from None
        users = {}
        for number, line in enumerate(lines, start=1):
            if not line.strip() or line.startswith("#"):
                continue
            token, comma, user = (part.strip() for part in line.partition(","))
            if not (token and comma and user):
                raise TokenFileError(f"{path}: line {number} is not of the form token,username")
            users[token] = user
        if not users:
            raise TokenFileError(f"{path}: holds no token")
        return cls(users)

    def user_of(self, authorization: str) -> Identity | None:
        """The user behind an Authorization header. Every token is compared, in constant time."""
        scheme, _, token = authorization.partition(" ")
        # A header's bytes that are not UTF-8 arrive as surrogates.
        given = token.strip().encode(errors="surrogateescape")
        found = None
        for known, user in self._users.items():
            if hmac.compare_digest(known, given):
                found = user
        if found is None or scheme.lower() != "bearer" or not given:
            return None
        return Identity(found, groups=(MASTERS, AUTHENTICATED))


def impersonates(headers: Iterable[str]) -> bool:
    """Whether these header names ask to act as somebody else (kubectl --as, --as-group, --as-uid)."""
    return any(name.lower().startswith("impersonate-") for name in headers)


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

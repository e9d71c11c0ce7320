"""Who may talk to the server: bearer tokens and the Host header."""

import hmac
from collections.abc import Mapping
from pathlib import Path

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

    def user_of(self, authorization: str) -> str | None:
        """The user behind an Authorization header. Every token is compared, in constant time."""
        scheme, _, token = authorization.partition(" ")
        # A header's bytes that are not UTF-8 arrive as surrogates.
        given = token.strip().encode(errors="surrogateescape")
        found = None
        for known, user in self._users.items():
            if hmac.compare_digest(known, given):
                found = user
        return found if scheme.lower() == "bearer" and given else None


def is_local_host(header: str) -> bool:
    """Whether a Host header names this machine. A browser tricked by DNS rebinding sends another name."""
    host = header.rsplit(":", 1)[0] if not header.endswith("]") else header
    return host.strip("[]").lower() in _LOCAL_HOSTS

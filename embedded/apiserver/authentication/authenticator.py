"""From a bearer token to the user behind it, for this server's own requests and for TokenReviews of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from embedded.apiserver.authentication.service_account_tokens import AccountTokens, Claims, TokenError
from embedded.apiserver.authentication.signing_key import ISSUER, SigningKey
from embedded.apiserver.authentication.token_file import TokenFile, bearer_token
from embedded.apiserver.request.user_info import ANONYMOUS, UserInfo

# Who a token must be meant for to be worth something here, and whom it is meant for when its request names nobody.
API_AUDIENCES = (ISSUER,)
_INVALID = "invalid bearer token"


@dataclass(frozen=True, slots=True)
class AuthenticatedToken:
    """The user of a token, and which of the audiences that were asked about it is meant for."""

    user: UserInfo
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a server knows its users by; the key signs the tokens of service accounts."""

    known: TokenFile = field(default_factory=lambda: TokenFile({}))
    key: SigningKey = field(default_factory=SigningKey.new)


class Authenticator:
    """Knows the users of the token file, and service accounts by the tokens issued to them."""

    def __init__(self, known: TokenFile, accounts: AccountTokens) -> None:
        self._known = known
        self._accounts = accounts

    def user_of(self, authorization: str) -> UserInfo | None:
        """Who sends this Authorization header: ANONYMOUS without a bearer token, None with one that is no good."""
        token = bearer_token(authorization)
        if not token:
            return ANONYMOUS
        try:
            return self.check(token).user
        except TokenError:
            return None

    def check(self, token: bytes, audiences: Sequence[str] = ()) -> AuthenticatedToken:
        """Whose token this is, if it is meant for any of the audiences (none: this server); raises TokenError."""
        asked = tuple(audiences) or API_AUDIENCES
        known = self._known.user_of(token)
        if known is not None:
            return AuthenticatedToken(known, _meant(API_AUDIENCES, asked))
        claims = self._accounts.claims(token)
        if claims is None:
            raise TokenError(_INVALID)
        try:
            return self._checked(claims, asked)
        except TokenError as error:
            raise TokenError(f"[{_INVALID}, {error}]") from None

    def _checked(self, claims: Claims, asked: tuple[str, ...]) -> AuthenticatedToken:
        meant = tuple(each for each in claims.aud if each in asked)
        if not meant:
            raise TokenError(
                f"token audiences {_listed(claims.aud)} is invalid for the target audiences {_listed(asked)}"
            )
        return AuthenticatedToken(self._accounts.identity(claims), meant)


def _meant(audiences: tuple[str, ...], asked: tuple[str, ...]) -> tuple[str, ...]:
    found = tuple(each for each in audiences if each in asked)
    if not found:
        raise TokenError(_INVALID)
    return found


def _listed(audiences: tuple[str, ...]) -> str:
    """As Go prints a list of texts with %q."""
    return "[" + " ".join(f'"{each}"' for each in audiences) + "]"

"""Tokens are asked for once and again in good time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from embedded.node.objects.sources import TokenRef, VolumeNotReady
from embedded.node.objects.tokens import PodTokens, Token, token_ref


@pytest.fixture
def reading(pod: Any) -> Any:
    """A pod with a token for an hour and one for another audience for ten days."""
    sources = [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "c"}},
        {"serviceAccountToken": {"path": "other", "audience": "vault", "expirationSeconds": 864_000}},
    ]
    return pod(volumes=[{"name": "v", "projected": {"sources": sources}}, {"name": "d", "emptyDir": {}}])


OWN, VAULT = TokenRef("", 3600), TokenRef("vault", 864_000)


def test_ref() -> None:
    """An hour where nothing is said."""
    assert token_ref({"path": "x"}) == OWN
    assert token_ref({"audience": "a", "expirationSeconds": 600}) == TokenRef("a", 600)


def test_renewed(reading: Any, api: Any, clock: Any) -> None:
    """After four fifths of its life, or after a day."""
    api.token_now = clock
    tokens = PodTokens(api.request_token, clock)

    def asked(after_seconds: float) -> list[TokenRef]:
        clock.advance(after_seconds)
        before = len(api.tokens_asked)
        held = asyncio.run(tokens.of(reading))
        assert set(held) == {OWN, VAULT}
        return list(api.tokens_asked[before:])

    assert asked(0) == [OWN, VAULT]
    assert asked(2879) == []
    assert asked(1) == [OWN]
    assert asked(2880) == [OWN]
    assert asked(24 * 3600 - 5760) == [OWN, VAULT]


def test_not_renewed(reading: Any, api: Any, clock: Any) -> None:
    """The old one serves until it expires; then, and at the beginning, its volume is not ready."""
    api.token_now = clock
    tokens = PodTokens(api.request_token, clock)
    first = asyncio.run(tokens.of(reading))
    api.away = True
    clock.advance(3599)
    assert asyncio.run(tokens.of(reading)) == first
    clock.advance(1)
    for held in (tokens, PodTokens(api.request_token, clock)):
        with pytest.raises(VolumeNotReady, match='for volume "v" : failed to fetch token: '):
            asyncio.run(held.of(reading))


def test_due(clock: Any) -> None:
    """A short life is short for everybody."""
    issued = clock()
    token = Token("t", issued, issued + timedelta(seconds=600))
    assert [token.due(issued + timedelta(seconds=each)) for each in (0, 479, 480)] == [False, False, True]

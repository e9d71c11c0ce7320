"""TokenReview and SubjectAccessReview against a scripted API server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import structlog

from kube.reviews import NODE_KEY, Caller, Reviews
from model.fault import KubernetesFault

AGENT = "system:serviceaccount:sublet-system:sublet-agent"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def reviewed(name: str = AGENT, audiences: list[str] | None = None, **user: Any) -> Any:
    """A TokenReview's answer that vouches for `name`."""
    status: dict[str, Any] = {"authenticated": True, "user": {"username": name} | user}
    return {"status": status | ({"audiences": audiences} if audiences is not None else {})}


@pytest.fixture
def play(server: Any) -> Callable[..., None]:
    """Runs `scene(reviews, clock)` with the answers of the server."""

    def run(
        answers: list[Any], scene: Callable[[Reviews, Clock], Awaitable[None]], *audiences: str, most: int = 9
    ) -> None:
        async def whole() -> None:
            server.answers = answers
            clock = Clock()
            async with await server.start() as client:
                await scene(Reviews(client, audiences, clock, most), clock)
            await server.stop()

        asyncio.run(whole())

    return run


def test_a_caller_with_all_that_is_known_of_it(play: Any, server: Any, says_: Any) -> None:
    """Name, uid, groups, extra; the node from the token's binding."""
    user = {"uid": "u1", "groups": ["system:serviceaccounts"], "extra": {NODE_KEY: ["n1"]}}

    async def scene(reviews: Reviews, clock: Clock) -> None:
        caller = await reviews.caller("t")
        assert caller == Caller(AGENT, "u1", ("system:serviceaccounts",), {NODE_KEY: ("n1",)})
        assert caller.node == "n1"

    play([says_(reviewed(audiences=["a"], **user))], scene, "a")
    ((method, path, _, body),) = server.requests
    assert (method, path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert body["spec"] == {"token": "t", "audiences": ["a"]}


@pytest.mark.parametrize(
    ("caller", "node"),
    [
        (Caller("system:node:n2"), "n2"),
        (Caller("somebody"), ""),
        (Caller(AGENT, extra={NODE_KEY: ()}), ""),
        (Caller("system:node:n2", extra={NODE_KEY: ("n1",)}), "n1"),
    ],
)
def test_whose_node(caller: Caller, node: str) -> None:
    """The binding counts before the name."""
    assert caller.node == node


NOBODY: dict[str, Any] = {
    "not authenticated": {"status": {"authenticated": False, "error": "expired"}},
    "no status": {},
    "another audience": reviewed(audiences=["b"]),
    "a server that knows no audiences": reviewed(),
    "empty audiences": reviewed(audiences=[]),
    "no name": reviewed("", ["a"]),
}


@pytest.mark.parametrize("name", NOBODY)
def test_nobody(play: Any, says_: Any, name: str) -> None:
    """Only a token that was made for our audience, says the server itself."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        assert await reviews.caller("t") is None

    play([says_(NOBODY[name])], scene, "a")


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "tök", "x" * 16_400, "=", "a,b"])
def test_what_can_be_no_token_is_not_asked_about(play: Any, server: Any, says_: Any, token: str) -> None:
    """It costs the API server nothing."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        assert await reviews.caller(token) is None

    play([says_(reviewed())], scene)
    assert server.requests == []


def test_a_yes_lasts_a_minute_and_a_no_ten_seconds(play: Any, server: Any, says_: Any) -> None:
    """A token that was revoked is found out within a minute; one that becomes valid within ten seconds."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        for now, known, asked in (
            (0.0, False, 1), (9.9, False, 1), (10.1, True, 2), (70.0, True, 2), (70.2, False, 3),
        ):  # fmt: skip
            clock.now = now
            assert (await reviews.caller("t") is not None, len(server.requests)) == (known, asked), now
        assert await reviews.caller("other") is None and len(server.requests) == 4

    no = says_({"status": {"authenticated": False}})
    play([no, says_(reviewed()), no], scene)


def test_many_who_wait_are_one_question(play: Any, server: Any, says_: Any) -> None:
    """Also where the first of them leaves."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        first = asyncio.create_task(reviews.caller("t"))
        others = [asyncio.create_task(reviews.caller("t")) for _ in range(50)]
        await asyncio.sleep(0)
        first.cancel()
        assert {caller.name for caller in await asyncio.gather(*others) if caller} == {AGENT}

    play([says_(reviewed())], scene)
    assert len(server.requests) == 1


def test_without_an_answer_nobody_is_known(play: Any, server: Any, says_: Any) -> None:
    """A fault, which is not remembered; and the token is neither in it nor in a log."""
    token = "eyJ.secret.sig"

    async def scene(reviews: Reviews, clock: Clock) -> None:
        for _ in range(2):
            with pytest.raises(KubernetesFault) as told:
                await reviews.caller(token)
            assert token not in str(told.value) and "tokenreview" in str(told.value).lower()
        assert await reviews.caller(token) is not None
        clock.now = 61.0
        with pytest.raises(KubernetesFault):
            await reviews.caller(token)

    with structlog.testing.capture_logs() as logs:
        play([says_({"message": "down"}, 503), says_([1]), says_(reviewed()), says_({"message": "no"}, 403)], scene)
    assert token not in str(logs) and len(server.requests) == 4


def test_rights_are_asked_for_the_whole_caller(play: Any, server: Any, says_: Any) -> None:
    """User, uid, groups and extra; remembered by all of them, verb and path."""
    caller = Caller("ann", "7", ("dev",), {"scopes": ("a", "b")})

    async def scene(reviews: Reviews, clock: Clock) -> None:
        assert await reviews.allowed(caller, "get", "/metrics")
        assert await reviews.allowed(caller, "get", "/metrics")
        assert not await reviews.allowed(caller, "get", "/other")
        assert not await reviews.allowed(Caller("ann"), "get", "/metrics")

    play([says_({"status": {"allowed": True}}), says_({"status": {"allowed": False}})], scene)
    assert [path for _, path, _, _ in server.requests] == ["/apis/authorization.k8s.io/v1/subjectaccessreviews"] * 3
    assert server.requests[0][3]["spec"] == {
        "user": "ann",
        "uid": "7",
        "groups": ["dev"],
        "extra": {"scopes": ["a", "b"]},
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


def test_a_right_to_one_object(play: Any, server: Any, says_: Any) -> None:
    """As a kubelet asks of whoever calls it."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        assert await reviews.allowed_object(Caller("ann"), "get", "nodes", "n1", "proxy")

    play([says_({"status": {"allowed": True}})], scene)
    what = {"verb": "get", "resource": "nodes", "name": "n1", "subresource": "proxy", "version": "v1"}
    assert server.requests[0][3]["spec"]["resourceAttributes"] == what


def test_what_is_remembered_is_bounded(play: Any, server: Any, says_: Any) -> None:
    """The least recently used is forgotten first."""

    async def scene(reviews: Reviews, clock: Clock) -> None:
        for token in ("a", "b", "a", "c", "a", "b"):
            await reviews.caller(token)

    play([says_(reviewed())], scene, most=2)
    assert [body["spec"]["token"] for *_, body in server.requests] == ["a", "b", "c", "b"]

"""An Eviction that is asked for, and the pod that is stored at that moment."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from admission.core.evictions import StoredPod
from admission.evictions import EvictionReviewer
from admission.reviewer import Malformed, ReviewRequest, read
from embedded.apiserver.admission.review import verdict
from model.fault import KubernetesFault

AGENTS = "system:serviceaccount:sublet-system:sublet-agent"
AGENT = {"username": AGENTS, "extra": {"authentication.kubernetes.io/node-name": ["one"]}}
PINNED = {"deleteOptions": {"preconditions": {"uid": "u1"}}}
BATCH = StoredPod("shop", "web", "u1", "one", {"koordinator.sh/qosClass": "BE"})
ONLINE = StoredPod("shop", "web", "u1", "one", {"koordinator.sh/qosClass": "LS"})


class Store:
    """A FindPod of one pod, or of what reading it fails with."""

    def __init__(self, held: StoredPod | KubernetesFault) -> None:
        self.asked: list[str] = []
        self._held = held

    async def __call__(self, namespace: str, name: str) -> StoredPod:
        self.asked.append(f"{namespace}/{name}")
        if isinstance(self._held, KubernetesFault):
            raise self._held
        return self._held


def failed(what: str, status: int = 0, reason: str = "") -> Store:
    return Store(KubernetesFault("GET /api/v1/namespaces/shop/pods/web", what, status=status, reason=reason))


def review(eviction: Any = PINNED, user: Any = AGENT, **more: Any) -> ReviewRequest:
    kind = {"group": "policy", "version": "v1", "kind": "Eviction"}
    where = {"namespace": "shop", "name": "web", "operation": "CREATE", "subResource": "eviction"}
    request = {"uid": "r1", "kind": kind, **where, "userInfo": user, "object": eviction, **more}
    return read(
        msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    )


def ask(store: Store, eviction: Any = PINNED, user: Any = AGENT, **more: Any) -> dict[str, Any]:
    answer = asyncio.run(EvictionReviewer(AGENTS, store).answer(review(eviction, user, **more))).encoded()
    verdict(answer, "r1", mutating=False)  # what an API server makes of it: raises where it cannot
    response: dict[str, Any] = msgspec.json.decode(answer)["response"]
    return response


ALLOWED = {"uid": "r1", "allowed": True}


def test_the_stored_pod_decides() -> None:
    """Batch goes, online stays; v1beta1 says the same in the same words."""
    for version in ("v1", "v1beta1"):
        kind = {"group": "policy", "version": version, "kind": "Eviction"}
        store = Store(BATCH)
        assert ask(store, kind=kind) == ALLOWED and store.asked == ["shop/web"]
        refused = ask(Store(ONLINE), kind=kind)
        assert refused["allowed"] is False and refused["status"]["code"] == 403
        assert "Pod shop/web: metadata.labels[koordinator.sh/qosClass] is LS" in refused["status"]["message"]


def test_a_pod_of_another_node() -> None:
    """The node is the one in the token; one that names none leaves it to the class."""
    there = msgspec.structs.replace(BATCH, node="two")
    assert "leave it to the agent of node two" in ask(Store(there))["status"]["message"]
    assert ask(Store(there), user={"username": AGENTS}) == ALLOWED
    assert ask(Store(there), user={"username": AGENTS, "extra": None}) == ALLOWED


@pytest.mark.parametrize(
    "eviction", [{}, None, {"deleteOptions": None}, {"deleteOptions": {"preconditions": {"uid": ""}}}]
)
def test_whoever_names_no_uid_is_refused(eviction: Any) -> None:
    """By its name alone a pod is evicted that did not exist when the name was looked for; nothing is read for that."""
    store = Store(BATCH)
    said = ask(store, eviction)["status"]["message"]
    assert said == "Eviction shop/web: deleteOptions.preconditions.uid is missing; write the uid of the pod"
    assert not store.asked


def test_a_pod_that_is_gone_is_the_api_servers_to_tell_of() -> None:
    """404, or 409 where another has its name by now, as its precondition says: the agent tells both from a refusal."""
    assert ask(failed("not found", 404)) == ALLOWED
    assert ask(Store(msgspec.structs.replace(ONLINE, uid="u2"))) == ALLOWED


@pytest.mark.parametrize("status", [0, 403, 429, 500, 503])
def test_an_outage_keeps_no_agent_from_evicting(status: int) -> None:
    """Nor is it silent."""
    answer = ask(failed("no answer", status))
    assert answer["allowed"] is True
    assert answer["warnings"] == ["let pass unjudged, since the pod could not be read: no answer"]


def test_a_pod_that_nobody_understands_stays() -> None:
    """That is no outage, and who it is is not known."""
    said = ask(failed("unreadable object: Expected `str`", reason="Unreadable"))["status"]["message"]
    assert said == "Pod shop/web: unreadable object: Expected `str`; correct the pod"


def test_one_token_does_not_make_us_slow() -> None:
    """Of each node eight are judged at once; more are to be tried again, and other nodes' do not wait for them."""

    async def scene() -> None:
        answered, busy = asyncio.Event(), set[str]()

        async def slow(namespace: str, name: str) -> StoredPod:
            busy.add(name)
            await answered.wait()
            return BATCH

        evictions = EvictionReviewer(AGENTS, slow)
        first = [asyncio.create_task(evictions.answer(review(name=f"web-{n}"))) for n in range(8)]
        while len(busy) < 8:
            await asyncio.sleep(0)
        refused = await evictions.answer(review())
        assert refused.refusal == "Eviction shop/web: 8 of node one are being judged; ask for fewer at once"
        assert msgspec.json.decode(refused.encoded())["response"]["status"]["code"] == 503
        other = {"username": AGENTS, "extra": {"authentication.kubernetes.io/node-name": ["two"]}}
        theirs = asyncio.create_task(evictions.answer(review(user=other, name="theirs")))
        while "theirs" not in busy:
            await asyncio.sleep(0)
        answered.set()
        assert all(not each.refusal for each in await asyncio.gather(*first))
        assert "leave it to the agent of node one" in (await theirs).refusal
        assert not (await evictions.answer(review())).refusal

    asyncio.run(scene())


def test_nobody_else_is_concerned() -> None:
    """Where the API server knows no match conditions it asks about everybody: `kubectl drain` goes on."""
    store = Store(ONLINE)
    assert ask(store, {}, {"username": "admin"}) == ALLOWED and not store.asked


def test_what_was_not_asked_for() -> None:
    """A rule of somebody's own stops nobody; what is no Eviction at all is malformed."""
    assert ask(Store(ONLINE), kind={"kind": "Pod"})["allowed"] is True
    with pytest.raises(Malformed, match="Expected"):
        ask(Store(ONLINE), {"deleteOptions": 5})

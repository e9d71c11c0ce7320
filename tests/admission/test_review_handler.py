"""A review from bytes to bytes, and what is counted of it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from admission_builders import BATCH, Cluster, profile, raw_pod

from admission.core.evictions import StoredPod
from admission.core.mutate import MutationPolicy
from admission.core.queue_rules import KnownQueue
from admission.core.validate import PodRules
from admission.evictions import EvictionReviewer
from admission.ports import Reply
from admission.review_handler import ReviewHandler
from admission.reviewer import Path, ReviewAnswer, Reviewer, ReviewRequest
from model.queue import Queue


class Meter:
    def __init__(self) -> None:
        self.reviews: list[tuple[str, str]] = []
        self.profiles: list[tuple[str, str]] = []

    def reviewed(self, kind: str, result: str, seconds: float) -> None:
        assert seconds >= 0
        self.reviews.append((kind, result))

    def profiled(self, profile: str, reason: str) -> None:
        self.profiles.append((profile, reason))


async def stored(namespace: str, name: str) -> StoredPod:
    return StoredPod(namespace, name, "u1", "one")


def ask(path: str, body: bytes, meter: Meter, cluster: Cluster | None = None) -> Reply:
    known = cluster or Cluster(BATCH)

    async def look_for(name: str) -> None:
        """As the API server would know it."""
        known.namespaces.setdefault(name, {"koordinator.sh/enable-colocation": "true"})

    async def look_for_parent(group: str, kind: str, raw: bytes) -> None:
        """As the API server would know it."""
        if (group, kind) == ("sublet.dev", "Queue"):
            known.known = {"org": KnownQueue(Queue("org"), "Queue org")}

    evictions = EvictionReviewer("system:serviceaccount:sublet-system:sublet-agent", stored)
    handler = ReviewHandler(Reviewer(known, MutationPolicy(), PodRules()), evictions, look_for, look_for_parent, meter)
    return asyncio.run(handler.handle(path, body))


def review(kind: str = "Pod", namespace: str = "batch") -> bytes:
    request = {"uid": "u", "kind": {"kind": kind}, "operation": "CREATE", "namespace": namespace, "object": raw_pod()}
    return msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})


def test_a_changed_pod() -> None:
    """Counted by result, and by profile."""
    meter = Meter()
    reply = ask("/mutate-pod", review(), meter)
    assert reply.status == 200 and b'"patchType":"JSONPatch"' in reply.body
    assert (meter.reviews, meter.profiles) == ([("Pod", "changed")], [("batch", "ProfileApplied")])


def test_a_namespace_that_is_not_known_yet_is_asked_for() -> None:
    """A pod is often faster than the watch."""
    assert b"patch" in ask("/mutate-pod", review(namespace="new"), Meter()).body


def test_a_parent_that_is_not_known_yet_is_asked_for() -> None:
    """Both are often made by one command."""
    queue = {"metadata": {"name": "a"}, "spec": {"parent": "org"}}
    kind = {"group": "sublet.dev", "kind": "Queue"}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "name": "a", "object": queue}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    meter = Meter()
    assert (ask("/validate-object", body, meter).status, meter.reviews) == (200, [("Queue", "allowed")])


def test_a_refusal() -> None:
    """An answer like any other to HTTP."""
    meter = Meter()
    reply = ask("/mutate-pod", review(), meter, Cluster(profile(priorityClassName="gone")))
    assert (reply.status, meter.reviews) == (200, [("Pod", "refused")])


def test_an_eviction() -> None:
    """Waits for its pod, and is counted as what it is."""
    user = {"username": "system:serviceaccount:sublet-system:sublet-agent"}
    told = {"deleteOptions": {"preconditions": {"uid": "u1"}}}
    asked = {"uid": "u", "kind": {"kind": "Eviction"}, "operation": "CREATE", "namespace": "default", "name": "web"}
    request = {**asked, "subResource": "eviction", "userInfo": user, "object": told}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    meter = Meter()
    reply = ask("/validate-eviction", body, meter)
    assert (reply.status, meter.reviews) == (200, [("Eviction", "refused")])
    assert b"Pod default/web: metadata.labels[koordinator.sh/qosClass] is none" in reply.body


def test_kinds_make_no_new_series() -> None:
    """Whoever sends reviews cannot fill the metrics."""
    meter = Meter()
    ask("/validate-object", review(kind="Made-Up"), meter)
    assert meter.reviews == [("other", "allowed")]


@pytest.mark.parametrize(
    ("path", "body", "status"), [("/mutate-pod", b"{", 400), ("/", b"{}", 404), ("/x", review(), 404)]
)
def test_what_is_no_review(path: str, body: bytes, status: int) -> None:
    """Told by the status, in one line."""
    assert ask(path, body, Meter()).status == status


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


DEEP_BODIES = {
    "as Go writes it": b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u1","kind":'
    b'{"group":"config.koordinator.sh","version":"v1alpha1","kind":"ClusterColocationProfile"},"operation":"CREATE",'
    b'"object":%s}}' % nested(5000),
    "only with a uid": b'{"request": {"uid": "u1", "object": %s}}' % nested(5000),
}


@pytest.mark.parametrize("body", DEEP_BODIES.values(), ids=DEEP_BODIES)
def test_a_body_nested_too_deep_is_refused(body: bytes) -> None:
    """An error of HTTP would be passed over where the failure policy is Ignore."""
    reply = ask("/validate-object", body, Meter())
    response = msgspec.json.decode(reply.body)["response"]
    assert (reply.status, response["uid"], response["allowed"]) == (200, "u1", False)
    assert "is nested more than 64 levels deep (nest at most 64 " in response["status"]["message"]


def test_a_deep_body_without_a_uid_is_malformed() -> None:
    reply = ask("/validate-object", nested(5000), Meter())
    assert (reply.status, reply.body) == (400, b"no AdmissionReview: nested too deep")


@pytest.mark.parametrize(("levels", "allowed"), [(40, True), (80, False), (250, False), (700, False)])
def test_a_profile_with_a_deep_patch(levels: int, allowed: bool) -> None:
    """Refused with object, field and fix; what is within the bound can be applied."""
    patch = msgspec.Raw(b'{"metadata":{"x":%s}}' % nested(levels - 2))
    meta = {"name": "deep"}
    raw = {"metadata": meta, "spec": {"selector": {"matchLabels": {"a": "b"}}, "patch": patch}}
    kind = {"group": "config.koordinator.sh", "kind": "ClusterColocationProfile"}
    request = {"uid": "u", "kind": kind, "operation": "CREATE", "name": "deep", "object": raw}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    reply = ask("/validate-object", body, Meter())
    response = msgspec.json.decode(reply.body)["response"]
    assert (reply.status, response["allowed"]) == (200, allowed)
    if not allowed:
        assert response["status"]["message"] == (
            "ClusterColocationProfile deep: spec.patch: is nested more than 64 levels deep (nest at most 64 objects "
            "and lists in one another)"
        )


def test_many_reviews_of_one_namespace_hold_up_another_by_one() -> None:
    """Each may take a fifth of a second; a service's pod waits for its turn, not for all that came before."""
    asked: list[str] = []

    class Noting(Reviewer):
        def answer(self, path: Path, request: ReviewRequest) -> ReviewAnswer:
            asked.append(request.namespace)
            return super().answer(path, request)

    async def look_for(*_: object) -> None: ...

    async def body() -> None:
        evictions = EvictionReviewer("system:serviceaccount:sublet-system:sublet-agent", stored)
        reviewer = Noting(Cluster(BATCH), MutationPolicy(), PodRules())
        handler = ReviewHandler(reviewer, evictions, look_for, look_for, Meter())
        bodies = [*(review(namespace="many") for _ in range(20)), review(namespace="shop")]
        await asyncio.gather(*(handler.handle("/mutate-pod", each) for each in bodies))

    asyncio.run(body())
    assert (asked.index("shop") < 3, len(asked)) == (True, 21)


def test_a_namespace_that_sends_too_much_at_once_is_told_to_try_again() -> None:
    """What waits for its turn is held in memory."""

    async def look_for(*_: object) -> None: ...

    async def body() -> list[Reply]:
        evictions = EvictionReviewer("system:serviceaccount:sublet-system:sublet-agent", stored)
        reviewer = Reviewer(Cluster(BATCH), MutationPolicy(), PodRules())
        handler = ReviewHandler(reviewer, evictions, look_for, look_for, Meter())
        pod = raw_pod(annotations={"large": "x" * (2 << 20)})
        request = {"uid": "u", "kind": {"kind": "Pod"}, "operation": "CREATE", "namespace": "many", "object": pod}
        large = msgspec.json.encode(
            {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        )
        return await asyncio.gather(*(handler.handle("/mutate-pod", each) for each in (*(large,) * 20, review())))

    *many, other = (msgspec.json.decode(reply.body)["response"] for reply in asyncio.run(body()))
    refused = [each["status"] for each in many if not each["allowed"]]
    assert (0 < len(refused) < 20, other["allowed"]) == (True, True)
    assert refused[0]["code"] == 503 and "namespace many" in refused[0]["message"]

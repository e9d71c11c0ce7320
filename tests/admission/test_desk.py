"""A review from bytes to bytes, and what is counted of it."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from admission_builders import BATCH, Cluster, profile, raw_pod

from admission.core.mutate import MutationPolicy
from admission.core.validate import PodRules
from admission.desk import Desk
from admission.ports import Reply
from admission.reviewer import Reviewer


class Meter:
    def __init__(self) -> None:
        self.reviews: list[tuple[str, str]] = []
        self.profiles: list[tuple[str, str]] = []

    def reviewed(self, kind: str, result: str, seconds: float) -> None:
        assert seconds >= 0
        self.reviews.append((kind, result))

    def profiled(self, profile: str, reason: str) -> None:
        self.profiles.append((profile, reason))


def ask(path: str, body: bytes, meter: Meter, cluster: Cluster | None = None) -> Reply:
    known = cluster or Cluster(BATCH)

    async def look_for(name: str) -> None:
        """As the API server would know it."""
        known.namespaces.setdefault(name, {"koordinator.sh/enable-colocation": "true"})

    desk = Desk(Reviewer(known, MutationPolicy(), PodRules()), look_for, meter)
    return asyncio.run(desk.handle(path, body))


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


def test_a_refusal() -> None:
    """An answer like any other to HTTP."""
    meter = Meter()
    reply = ask("/mutate-pod", review(), meter, Cluster(profile(priorityClassName="gone")))
    assert (reply.status, meter.reviews) == (200, [("Pod", "refused")])


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

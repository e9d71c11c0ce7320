"""What pods may use and count for scores; effective requests and QoS are in test_upstream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube import objects
from kube.dialects.amounts import SCORED_CPU_MILLIS, SCORED_MEMORY_BYTES, Amounts, amounts_of
from model.resources import CPU, MEMORY, PODS

GI = 1 << 30


def amounts(**spec: Any) -> Amounts:
    return amounts_of(msgspec.convert({"containers": [asks()], **spec}, objects.PodSpec), "Pod ns/p")


def asks(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


SIDECAR: dict[str, Any] = {"restartPolicy": "Always"}
LIMITS: dict[str, tuple[dict[str, Any], int]] = {
    "none": ({}, 0),
    "containers add up": ({"containers": [asks(limits={"cpu": 1}), asks(limits={"cpu": 2})]}, 3000),
    "of those that have one": ({"containers": [asks(limits={"cpu": 1}), asks(requests={"cpu": 2})]}, 1000),
    "a larger init container": (
        {"containers": [asks(limits={"cpu": 1})], "initContainers": [asks(limits={"cpu": 4})]},
        4000,
    ),
    "a sidecar adds": (
        {"containers": [asks(limits={"cpu": 1})], "initContainers": [asks(limits={"cpu": 4}, **SIDECAR)]},
        5000,
    ),
    "the whole pod's comes first": (
        {"containers": [asks(limits={"cpu": 1})], "resources": {"limits": {"cpu": 3}}},
        3000,
    ),
    "overhead adds to a limit": ({"containers": [asks(limits={"cpu": 1})], "overhead": {"cpu": "500m"}}, 1500),
    "overhead alone is none": ({"overhead": {"cpu": "500m"}}, 0),
}


@pytest.mark.parametrize(("spec", "millis"), LIMITS.values(), ids=LIMITS.keys())
def test_limits(spec: dict[str, Any], millis: int) -> None:
    """As component-helpers' PodLimits counts them."""
    assert amounts(**spec).limits()[CPU] == millis


SCORED: dict[str, tuple[dict[str, Any], int, int]] = {
    "nothing asked": ({}, SCORED_CPU_MILLIS, SCORED_MEMORY_BYTES),
    "all asked": ({"containers": [asks({"cpu": 1, "memory": "1Gi"})]}, 1000, GI),
    "one of two": ({"containers": [asks({"cpu": 1, "memory": "1Gi"}), asks()]}, 1100, GI + SCORED_MEMORY_BYTES),
    "zero is an answer": ({"containers": [asks({"cpu": 0, "memory": 0})]}, 0, 0),
    "a small init container": ({"initContainers": [asks()]}, SCORED_CPU_MILLIS, SCORED_MEMORY_BYTES),
    "a sidecar": ({"initContainers": [asks(**SIDECAR)]}, 2 * SCORED_CPU_MILLIS, 2 * SCORED_MEMORY_BYTES),
    "overhead on top": ({"overhead": {"cpu": "50m"}}, SCORED_CPU_MILLIS + 50, SCORED_MEMORY_BYTES),
    "the whole pod asks for one": ({"resources": {"requests": {"cpu": 2}}}, 2000, SCORED_MEMORY_BYTES),
}


@pytest.mark.parametrize(("spec", "millis", "size"), SCORED.values(), ids=SCORED.keys())
def test_scored(spec: dict[str, Any], millis: int, size: int) -> None:
    """kube-scheduler's NonZeroRequested: 100 m and 200 MB for every container that does not say."""
    found = amounts(**spec)
    scored = found.scored(found.requests())
    assert (scored[CPU], scored[MEMORY]) == (millis, size)


def test_other_resources_are_scored_as_asked() -> None:
    """Only CPU and memory have defaults."""
    found = amounts(containers=[asks({"nvidia.com/gpu": 2})])
    scored = found.scored(found.requests())
    assert (scored["nvidia.com/gpu"], scored[PODS]) == (2, 0)


def test_what_many_containers_ask_for_together_stays_countable() -> None:
    """Thousands of amounts that no machine has: each is cut, and so is their sum, whatever it is a sum of."""
    huge = [asks({"memory": "7Ei", "cpu": "8E"}, {"memory": "7Ei", "cpu": "8E"}, name=f"c{n}") for n in range(1100)]
    sidecars = [{**each, "name": f"i{n}", **SIDECAR} for n, each in enumerate(huge)]
    found = amounts(containers=huge, initContainers=sidecars, overhead={"memory": "7Ei", "cpu": "8E"})
    requests = found.requests()
    for vector in (requests, found.limits(), found.scored(requests)):
        assert (vector[CPU], vector[MEMORY]) == (1 << 53, 1 << 53)

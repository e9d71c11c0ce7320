"""What pods may use and count for scores; effective requests and QoS are in test_upstream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import objects
from kube.dialects.upstream import core_objects
from kube.dialects.upstream.amounts import SCORED_CPU_MILLIS, SCORED_MEMORY_BYTES, WrittenAmounts, amounts_of
from model.pod.spec import Container
from model.resources import CPU, MEMORY, PODS, ResourceVector

GI = 1 << 30


def amounts(**spec: Any) -> WrittenAmounts:
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


def told(name: str, promised: dict[str, Any] | None, in_force: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a kubelet says of a container."""
    resources = {} if in_force is None else {"resources": {"requests": in_force}}
    return {"name": name, **({} if promised is None else {"allocatedResources": promised}), **resources}


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {**INFEASIBLE, "reason": "Deferred"}
SMALL, LARGE = {"cpu": "100m", "memory": "1Gi"}, {"cpu": 2, "memory": "4Gi"}
RESIZED: dict[str, tuple[dict[str, Any], dict[str, Any], int, int]] = {
    "nothing told": (SMALL, {}, 100, GI),
    "as wanted": (SMALL, {"containerStatuses": [told("c", SMALL, SMALL)]}, 100, GI),
    "of another container": (SMALL, {"containerStatuses": [told("d", LARGE, LARGE)]}, 100, GI),
    "smaller, not promised yet": (SMALL, {"containerStatuses": [told("c", LARGE, LARGE)]}, 2000, 4 * GI),
    "smaller, not in force yet": (SMALL, {"containerStatuses": [told("c", SMALL, LARGE)]}, 2000, 4 * GI),
    "smaller, in force not told": (SMALL, {"containerStatuses": [told("c", LARGE)]}, 2000, 4 * GI),
    "smaller, promised not told": (SMALL, {"containerStatuses": [told("c", None, LARGE)]}, 2000, 4 * GI),
    "larger, deferred": (
        LARGE,
        {"conditions": [DEFERRED], "containerStatuses": [told("c", SMALL, SMALL)]},
        2000,
        4 * GI,
    ),
    "larger, refused": (
        {"cpu": 1000, "memory": "4Gi"},
        {"conditions": [INFEASIBLE], "containerStatuses": [told("c", SMALL, SMALL)]},
        100,
        GI,
    ),
    "added, deferred": (
        {"cpu": 2, "memory": "1Gi"},
        {"conditions": [DEFERRED], "containerStatuses": [told("c", {"memory": "1Gi"}, {"memory": "1Gi"})]},
        2000,
        GI,
    ),
    "added, refused": (
        {"cpu": 1000, "memory": "1Gi"},
        {"conditions": [INFEASIBLE], "containerStatuses": [told("c", {"memory": "1Gi"}, {"memory": "1Gi"})]},
        0,
        GI,
    ),
    "added, refused, promised not told": (
        {"cpu": "100m", "memory": "1Ti"},
        {"conditions": [INFEASIBLE], "containerStatuses": [told("c", None, {"cpu": "100m"})]},
        100,
        0,
    ),
    "added where nothing was, refused": (
        LARGE,
        {"conditions": [INFEASIBLE], "containerStatuses": [told("c", None, {})]},
        0,
        0,
    ),
    "of a container that never ran, refused": (LARGE, {"conditions": [INFEASIBLE]}, 0, 0),
    "of one that waits to run, refused": (
        LARGE,
        {"conditions": [INFEASIBLE], "containerStatuses": [{"name": "c"}]},
        0,
        0,
    ),
    "of one that waits to run, deferred": (
        LARGE,
        {"conditions": [DEFERRED], "containerStatuses": [{"name": "c"}]},
        2000,
        4 * GI,
    ),
    "one larger and one smaller, refused": (
        {"cpu": 1000, "memory": 1},
        {"conditions": [INFEASIBLE], "containerStatuses": [told("c", LARGE, LARGE)]},
        2000,
        4 * GI,
    ),
}


@pytest.mark.parametrize(("wanted", "status", "millis", "size"), RESIZED.values(), ids=RESIZED.keys())
@pytest.mark.parametrize("sidecar", [False, True])
def test_resized_in_place(
    wanted: dict[str, Any], status: dict[str, Any], millis: int, size: int, sidecar: bool
) -> None:
    """As kube-scheduler counts: what the kubelet still holds for a pod is nobody else's, and what it refused for good
    keeps nobody out."""
    one = asks({**wanted, "kubernetes.io/batch-cpu": 7})
    spec = {"containers": [one]}
    if sidecar:
        spec = {"containers": [asks(name="other")], "initContainers": [{**one, **SIDECAR}]}
        status = {**status, "containerStatuses": [], "initContainerStatuses": status.get("containerStatuses", [])}
    read = msgspec.convert(spec, objects.PodSpec)
    found = amounts_of(read, "Pod ns/p", msgspec.convert(status, objects.PodStatus)).requests()
    assert (found[CPU], found[MEMORY], found["kubernetes.io/batch-cpu"]) == (millis, size, 7)


LEAST: dict[str, tuple[dict[str, Any], dict[str, Any], int | None]] = {
    "nothing told": (SMALL, {}, None),
    "as wanted": (SMALL, {"containerStatuses": [told("c", SMALL, SMALL)]}, None),
    "larger, deferred": (LARGE, {"conditions": [DEFERRED], "containerStatuses": [told("c", SMALL, SMALL)]}, 100),
    "larger, not in force yet": (LARGE, {"containerStatuses": [told("c", LARGE, SMALL)]}, 100),
    "larger, refused": (LARGE, {"conditions": [INFEASIBLE], "containerStatuses": [told("c", SMALL, SMALL)]}, 100),
    "of one that waits to run": (LARGE, {"conditions": [DEFERRED], "containerStatuses": [{"name": "c"}]}, 0),
    "added": (LARGE, {"containerStatuses": [told("c", {"memory": "4Gi"}, {"memory": "4Gi"})]}, 0),
    "added, promised not told": (LARGE, {"containerStatuses": [told("c", None, {"memory": "4Gi"})]}, 0),
    "added, promised already": (LARGE, {"containerStatuses": [told("c", LARGE, {"memory": "4Gi"})]}, 0),
    "the same in other words": (SMALL, {"containerStatuses": [told("c", None, {"cpu": "0.1", "memory": GI})]}, None),
    "smaller, not promised yet": (SMALL, {"containerStatuses": [told("c", LARGE, LARGE)]}, 100),
}


@pytest.mark.parametrize(("wanted", "status", "millis"), LEAST.values(), ids=LEAST.keys())
def test_what_a_pod_has_for_certain(wanted: dict[str, Any], status: dict[str, Any], millis: int | None) -> None:
    """The least of what is wanted, promised and in force, told of pods that are resized alone."""
    body = {"spec": {"containers": [asks(wanted)]}, "status": status}
    found = core_objects.pod(msgspec.convert(body, objects.Pod)).spec
    assert (None if found.certain is None else found.certain[CPU]) == millis


WHOLE: dict[str, tuple[dict[str, Any], int]] = {
    "nothing told": ({}, 1000),
    "promised": ({"allocatedResources": {"cpu": 2}}, 2000),
    "in force": ({"allocatedResources": {"cpu": 1}, "resources": {"requests": {"cpu": 3}}}, 3000),
    "refused": ({"conditions": [INFEASIBLE], "allocatedResources": {"cpu": "500m"}}, 500),
}


@pytest.mark.parametrize(("status", "millis"), WHOLE.values(), ids=WHOLE.keys())
def test_a_pod_that_is_resized_as_a_whole(status: dict[str, Any], millis: int) -> None:
    """By what its status says of the pod, as kube-scheduler with InPlacePodLevelResourcesVerticalScaling."""
    spec = msgspec.convert({"containers": [asks()], "resources": {"requests": {"cpu": 1}}}, objects.PodSpec)
    found = amounts_of(spec, "Pod ns/p", msgspec.convert(status, objects.PodStatus))
    assert found.requests()[CPU] == millis


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


class Read(dict[str, int]):
    """Amounts that count how often they are looked at."""

    number = 0

    def items(self) -> Any:
        Read.number += len(self)
        return super().items()

    def get(self, *key: Any) -> Any:
        Read.number += 1
        return super().get(*key)

    def __iter__(self) -> Any:
        Read.number += len(self)
        return super().__iter__()


@pytest.mark.parametrize("sidecar", [True, False])
def test_what_it_costs_grows_as_the_pod_does(sidecar: bool) -> None:
    """And not with its square: whoever creates a pod of thousands of resources must not hold everybody up."""
    Read.number, number = 0, 500
    many = tuple(Container(f"c{n}", ResourceVector(Read({f"r{n}": 1, CPU: 1})), sidecar=sidecar) for n in range(number))
    found = WrittenAmounts(many, many, Container(""), ResourceVector()).requests()
    assert found[CPU] == number * (1 + sidecar) and found["r7"] == 1 + sidecar
    assert Read.number < 10 * number


BIG = st.integers(0, 3)
ASKED = st.dictionaries(st.sampled_from([CPU, MEMORY, PODS]), BIG, max_size=3).map(ResourceVector)


@given(st.lists(ASKED, min_size=1, max_size=4), st.lists(st.tuples(ASKED, st.booleans()), max_size=4))
def test_the_sum_is_that_of_each_moment(
    containers: list[ResourceVector], init: list[tuple[ResourceVector, bool]]
) -> None:
    """component-helpers' PodRequests, moment by moment: each init container with the sidecars before it, then all."""
    moments = [[one for one, sidecar in init[:at] if sidecar] + [asked] for at, (asked, _) in enumerate(init)]
    moments.append([one for one, sidecar in init if sidecar] + containers)
    regular = tuple(Container("c", asked) for asked in containers)
    before = tuple(Container("i", asked, sidecar=sidecar) for asked, sidecar in init)
    found = WrittenAmounts(regular, before, Container(""), ResourceVector()).requests()
    for name in (CPU, MEMORY, PODS):
        assert found[name] == max(sum(asked[name] for asked in moment) for moment in moments)

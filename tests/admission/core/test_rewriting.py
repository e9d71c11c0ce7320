"""cpu and memory in lent terms: what is renamed, what stays, and what cannot be said."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from admission_builders import raw_container

from admission.core.rewriting import NoLentForm, band_of, rewritten
from model.qos import PriorityBand
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY


def pod(*containers: dict[str, Any], priority: int | None = 5000, **spec: Any) -> dict[str, Any]:
    fields = {"containers": list(containers), **spec}
    return {"metadata": {}, "spec": fields if priority is None else {"priority": priority, **fields}}


def resources(found: dict[str, Any]) -> dict[str, Any]:
    (container,) = found["spec"]["containers"]
    return container["resources"]


RENAMED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "requests": (
        {"requests": {"cpu": "2", "memory": "4Gi"}},
        {"requests": {BATCH_CPU: "2000", BATCH_MEMORY: "4Gi"}},
    ),
    "half a CPU": ({"requests": {"cpu": "0.5"}}, {"requests": {BATCH_CPU: "500"}}),
    "milli-CPU": ({"requests": {"cpu": "1500m"}}, {"requests": {BATCH_CPU: "1500"}}),
    "a limit stands for the request": (
        {"limits": {"cpu": "1", "memory": "1Gi"}},
        {"limits": {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"}, "requests": {BATCH_CPU: "1000", BATCH_MEMORY: "1Gi"}},
    ),
    "not where there is one": (
        {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
        {"requests": {BATCH_CPU: "1000"}, "limits": {BATCH_CPU: "2000"}},
    ),
    "other resources stay": (
        {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
        {"requests": {"nvidia.com/gpu": "1", BATCH_CPU: "1000"}},
    ),
    "lent amounts that stand there already were meant": (
        {"requests": {"cpu": "1", BATCH_CPU: "3000"}},
        {"requests": {BATCH_CPU: "3000"}},
    ),
    "nothing": ({}, {}),
}


@pytest.mark.parametrize(("asked", "wanted"), RENAMED.values(), ids=RENAMED)
def test_a_batch_container(asked: dict[str, Any], wanted: dict[str, Any]) -> None:
    """In terms of batch; what was given stays as it was, and a second time changes nothing."""
    given = pod(raw_container(**asked))
    before = copy.deepcopy(given)
    found = rewritten(given)
    assert resources(found.pod) == wanted
    assert given == before
    again = rewritten(found.pod)
    assert (again.pod, again.changes) == (found.pod, ())


@pytest.mark.parametrize(
    ("priority", "labels", "band"),
    [
        (5000, {}, PriorityBand.BATCH),
        (7000, {}, PriorityBand.MID),
        (9000, {}, PriorityBand.PROD),
        (None, {"koordinator.sh/qosClass": "BE"}, PriorityBand.BATCH),
        (None, {"koordinator.sh/priority-class": "koord-mid"}, PriorityBand.MID),
    ],
)
def test_the_band(priority: int | None, labels: dict[str, str], band: PriorityBand) -> None:
    """By label, number or QoS class."""
    found = {**pod(raw_container(), priority=priority), "metadata": {"labels": labels}}
    assert band_of(found) is band


def test_each_band_has_its_own_names() -> None:
    """Of prod nothing is renamed."""
    asked = raw_container(requests={"cpu": "1", "memory": "1Gi"})
    mid = rewritten(pod(asked, priority=7000))
    assert resources(mid.pod) == {"requests": {MID_CPU: "1000", MID_MEMORY: "1Gi"}}
    prod = pod(asked, priority=9000)
    assert (rewritten(prod).pod, rewritten(prod).changes) == (prod, ())


def test_what_was_renamed_is_told() -> None:
    """Container, field, and both amounts."""
    found = rewritten(
        pod(raw_container("a", requests={"cpu": "2"}), initContainers=[raw_container("i", limits={"memory": "1Gi"})])
    )
    assert found.changes == (
        f"container i: limits.memory 1Gi → {BATCH_MEMORY} 1Gi",
        f"container a: requests.cpu 2 → {BATCH_CPU} 2000",
    )


def test_overhead() -> None:
    """Renamed, unless a RuntimeClass gave it: the API server compares that word for word."""
    own = rewritten(pod(raw_container(), overhead={"cpu": "250m"}))
    assert own.pod["spec"]["overhead"] == {BATCH_CPU: "250"}
    given = rewritten(pod(raw_container(), overhead={"cpu": "250m"}, runtimeClassName="vm"))
    assert given.pod["spec"]["overhead"] == {"cpu": "250m"} and given.changes == ()


def test_a_pods_own_resources_are_those_of_its_container() -> None:
    """Of its only one; the rest of what it asks for as a whole stays."""
    found = rewritten(pod(raw_container(), resources={"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}, "claims": []}))
    assert resources(found.pod) == {"requests": {BATCH_CPU: "1000"}}
    assert found.pod["spec"]["resources"] == {"requests": {"hugepages-2Mi": "2Mi"}, "claims": []}
    bare = rewritten(pod(raw_container(), resources={"limits": {"memory": "1Gi"}}))
    assert "resources" not in bare.pod["spec"]


@pytest.mark.parametrize(
    "given",
    [
        pod(raw_container("a"), raw_container("b"), resources={"requests": {"cpu": "1"}}),
        pod(raw_container("a"), initContainers=[raw_container("i")], resources={"requests": {"cpu": "1"}}),
    ],
)
def test_what_several_share_cannot_be_lent(given: dict[str, Any]) -> None:
    """The words say what to write instead."""
    with pytest.raises(NoLentForm, match=r"spec\.resources: .* write requests and limits at each container"):
        rewritten(given)


@pytest.mark.parametrize("amount", ["much", "", "1 CPU"])
def test_an_amount_that_is_none(amount: str) -> None:
    """The container and the field are named."""
    with pytest.raises(NoLentForm, match=r"container main: requests\.cpu: "):
        rewritten(pod(raw_container(requests={"cpu": amount})))

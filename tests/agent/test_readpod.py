"""One pod that cannot be read, for whatever reason, is a fault that names it and nothing more."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from agent.readpod import InternalError, read_pod
from kube import objects
from model.fault import ConfigurationFault


def pod(**spec: Any) -> objects.Pod:
    return objects.Pod(objects.Metadata(name="a", namespace="ns", uid="u"), objects.PodSpec(**spec))


def test_a_pod() -> None:
    """As it is."""
    assert read_pod(pod()).key == "ns/a"


def test_an_amount_that_is_none() -> None:
    """The fault as it was raised."""
    container = objects.Container("c", objects.Resources({"cpu": "much"}))
    with pytest.raises(ConfigurationFault, match="Pod ns/a: container c") as caught:
        read_pod(pod(containers=[container]))
    assert not isinstance(caught.value, InternalError)


def test_an_error_of_ours() -> None:
    """Whoever reads the log finds where; the agent goes on."""
    with pytest.raises(InternalError, match="Pod ns/a: cannot be read by an error of the agent: TypeError") as caught:
        read_pod(pod(containers=cast(Any, None)))
    assert isinstance(caught.value.__cause__, TypeError)


def test_what_a_node_has_no_use_for() -> None:
    """However much of it a pod has, the agent holds none; of its eviction policy the rules that there are."""
    policy = msgspec.json.encode(["BEMemoryEvict", *(f"x{number}" for number in range(1000))]).decode()
    annotations = {"koordinator.sh/eviction-policy": policy, "gang.scheduling.koordinator.sh/name": "train"}
    labels = {f"label-{number}": "x" * 63 for number in range(1000)}
    metadata = objects.Metadata(name="a", namespace="ns", uid="u", labels=labels, annotations=annotations)
    spec = objects.PodSpec(node_name="n", node_selector=labels, tolerations=[objects.Toleration("k")] * 1000)
    found = read_pod(objects.Pod(metadata, spec))
    assert len(msgspec.json.encode(found)) < 2000
    assert found.spec.node_name == "n" and found.colocation.eviction.features == {"BEMemoryEvict"}

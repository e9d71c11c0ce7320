"""`replicaResources` are what the first container does not say itself."""

from __future__ import annotations

from typing import Any

import pytest
from job_objects import TEMPLATE

from kube.dialects.jobs.replica_resources import ReplicaResources, with_resources


def resources(template: Any, told: ReplicaResources | None) -> Any:
    return with_resources(template, told)["spec"]["containers"][0].get("resources")


def test_requests_and_limits_alike() -> None:
    amounts = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "8"}
    assert resources(TEMPLATE, ReplicaResources(8, "2", "4Gi")) == {"requests": amounts, "limits": amounts}


@pytest.mark.parametrize("told", [None, ReplicaResources(), ReplicaResources(gpu=0)])
def test_nothing_is_added(told: ReplicaResources | None) -> None:
    assert with_resources(TEMPLATE, told) is TEMPLATE


def test_the_containers_own_word_stays() -> None:
    """A limit stands for the request that is not made."""
    own = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}, {"name": "other"}]}}
    found = with_resources(own, ReplicaResources(cpu="2", memory="1Gi"))["spec"]["containers"]
    assert found[0]["resources"] == {"requests": {"memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    assert found[1] == {"name": "other"}

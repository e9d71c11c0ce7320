"""The volume of a pod's socket: for whom it asks, in all its containers, once."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from admission_builders import create, raw_container, raw_pod

from admission.core.podsocket import with_socket

ASKS = {"sublet.dev/checkpoint-socket": "true"}
VOLUME = {"name": "sublet-socket", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
MOUNT = {"name": "sublet-socket", "mountPath": "/var/run/sublet"}
VARIABLE = {"name": "SUBLET_SOCKET_DIR", "value": "/var/run/sublet"}


def container(name: str = "main", **more: Any) -> dict[str, Any]:
    return raw_container(name) | more


def test_every_container_has_it_beside_what_is_its_own() -> None:
    own = {"env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    pod = raw_pod(container(**own), container("side"), annotations=ASKS, volumes=[{"name": "data", "emptyDir": {}}])
    before = copy.deepcopy(pod)
    spec = with_socket(pod)["spec"]
    assert spec["volumes"] == [{"name": "data", "emptyDir": {}}, VOLUME]
    assert [each["volumeMounts"] for each in spec["containers"]] == [[*own["volumeMounts"], MOUNT], [MOUNT]]
    assert [each["env"] for each in spec["containers"]] == [[*own["env"], VARIABLE], [VARIABLE]]
    assert pod == before


LEFT: dict[str, dict[str, Any]] = {
    "one that does not ask": raw_pod(),
    "one that does not want it": raw_pod(annotations={"sublet.dev/checkpoint-socket": "false"}),
    "one with such a volume": raw_pod(annotations=ASKS, volumes=[{"name": "sublet-socket", "emptyDir": {}}]),
    "one on Windows": raw_pod(annotations=ASKS, os={"name": "windows"}),
}


@pytest.mark.parametrize("pod", LEFT.values(), ids=LEFT)
def test_pods_that_are_left_as_they_are(pod: dict[str, Any]) -> None:
    assert with_socket(pod) == pod


def test_what_a_container_says_itself_stays() -> None:
    """A mount at that place is its own affair, a variable of that name its own word."""
    mounted = container(volumeMounts=[{"name": "data", "mountPath": "/var/run/sublet/"}])
    named = container("named", env=[{"name": "SUBLET_SOCKET_DIR", "value": "/elsewhere"}])
    spec = with_socket(raw_pod(mounted, named, annotations=ASKS))["spec"]
    assert spec["containers"][0] == mounted
    assert spec["containers"][1] == named | {"volumeMounts": [MOUNT]}


def test_the_webhook_gives_it_once() -> None:
    """Applied to its own result it changes nothing, whether a profile selects the pod or none."""
    for labels in ({}, {"app-type": "batch"}):
        result = create(raw_pod(container(), annotations=ASKS, labels=labels))
        assert VOLUME in result.pod["spec"]["volumes"]
        assert create(result.pod).pod == result.pod

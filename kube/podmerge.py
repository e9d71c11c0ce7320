"""Merge keys of a Pod's lists under a strategic merge patch: what is not named here replaces or is a map.

Source: x-kubernetes-patch-merge-key and -strategy in Kubernetes' OpenAPI description of io.k8s.api.core.v1.Pod. A pod's
status is left out: nobody who creates a pod may set it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from kube.objects import Pod
from kube.strategic import MergeError, strategic_merge


class PodRule(msgspec.Struct, frozen=True):
    """A kube.strategic.Rule."""

    kind: Literal["struct", "list"]
    fields: Mapping[str, PodRule] = {}
    items: PodRule | None = None
    merge_key: str = ""
    strategies: tuple[str, ...] = ()


def _by(key: str, fields: Mapping[str, PodRule] | None = None, *strategies: str) -> PodRule:
    """A list whose items are told apart by a key, or are their own where it is empty."""
    return PodRule("list", items=PodRule("struct", fields or {}), merge_key=key, strategies=strategies or ("merge",))


_CONTAINERS = _by(
    "name",
    {
        "env": _by("name"),
        "ports": _by("containerPort"),
        "volumeDevices": _by("devicePath"),
        "volumeMounts": _by("mountPath"),
    },
)
_SPEC = {
    "containers": _CONTAINERS,
    "ephemeralContainers": _CONTAINERS,
    "evictionResponders": _by("name"),
    "hostAliases": _by("ip"),
    "imagePullSecrets": _by("name"),
    "initContainers": _CONTAINERS,
    "resourceClaims": _by("name", None, "merge", "retainKeys"),
    "schedulingGates": _by("name"),
    "topologySpreadConstraints": _by("topologyKey"),
    "volumes": _by("name", None, "merge", "retainKeys"),
}
POD = PodRule(
    "struct",
    {
        "metadata": PodRule("struct", {"finalizers": _by(""), "ownerReferences": _by("uid")}),
        "spec": PodRule("struct", _SPEC),
    },
)


def merge_pod(pod: dict[str, Any], patch: Any) -> dict[str, Any]:
    """The pod with a strategic merge patch applied; the pod given stays as it is.

    Raises kube.strategic.MergeError, also where what comes out is no pod: text for a list, a number for a label.
    """
    merged = strategic_merge(pod, patch, POD)
    try:
        msgspec.convert(merged, Pod)
    except msgspec.ValidationError as error:
        raise MergeError(f"what comes out is no pod: {error}") from None
    return merged

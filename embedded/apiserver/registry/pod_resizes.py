"""What pods/resize may change of a pod: `dropNonResizeUpdates` of Kubernetes' pkg/registry/core/pod/strategy.go."""

from __future__ import annotations

from typing import Any

from embedded.apiserver.apimachinery.objects import Object

_GROUPS = ("containers", "initContainers")
_CHANGED = ("resources", "resizePolicy")


def keep_all_but_resources(new: Object, old: Object) -> None:
    """Put back, in place, all but the containers' resources; other containers than before are left to be refused."""
    spec = new.get("spec")
    asked: Object = spec if isinstance(spec, dict) else {}
    new.clear()
    new.update({**old, "metadata": dict(old["metadata"]), "spec": dict(old["spec"])})
    for group in _GROUPS:
        if found := _resized(asked.get(group), old["spec"].get(group)):
            new["spec"][group] = found
        else:
            new["spec"].pop(group, None)


def _resized(asked: Any, held: Any) -> list[Object]:
    if _names(asked) != _names(held):
        return asked or []
    return [_with_resources(before, each) for before, each in zip(held or (), asked or (), strict=True)]


def _with_resources(held: Object, asked: Object) -> Object:
    kept = {key: value for key, value in held.items() if key not in _CHANGED}
    return kept | {key: asked[key] for key in _CHANGED if key in asked}


def _names(containers: Any) -> list[str]:
    return [str(each.get("name")) for each in containers or ()]

"""The scale sub-resource: autoscaling/v1 Scale read from, and written to, the paths that a custom resource's
definition names, and those of Deployments and ReplicaSets.

https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#scale-subresource
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value
from embedded.apiserver.apimachinery.json_patch import json_patch, merge_patch
from embedded.apiserver.apimachinery.objects import Object, copy, dig, name_of
from embedded.apiserver.apimachinery.resource_types import SCALES, ScalePaths
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers import modify
from embedded.apiserver.presentation.columns import selector_text
from embedded.apiserver.presentation.tables import table, wants_table
from embedded.apiserver.registry.resources import WriteOptions, check_preconditions
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.serialization.request_body import body_of, check_named

if TYPE_CHECKING:
    from embedded.apiserver.admission.admitted_writes import AdmittedWrites
    from embedded.apiserver.apimachinery.resource_types import ResourceType
    from embedded.apiserver.request.target import Target

_API_VERSION = "autoscaling/v1"
_KEPT_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
_BUILT_IN = ScalePaths("spec.replicas", "status.replicas", "")


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A resource seen through its scale sub-resource."""

    rtype: ResourceType
    paths: ScalePaths
    obj: Object

    def shown(self) -> Object:
        """Its Scale; a wanted count of zero is left out, as Go leaves out zeros."""
        wanted = dig(self.obj, self.paths.spec_replicas)
        state: Object = {"replicas": dig(self.obj, self.paths.status_replicas, 0)}
        if selector := self._selector():
            state["selector"] = selector
        meta = self.obj["metadata"]
        return {
            "kind": "Scale",
            "apiVersion": _API_VERSION,
            "metadata": {key: meta[key] for key in _KEPT_METADATA if key in meta},
            "spec": {"replicas": wanted} if wanted else {},
            "status": state,
        }

    def _selector(self) -> str | None:
        if self.rtype.custom is None:
            return selector_text(dig(self.obj, "spec.selector"))
        return dig(self.obj, self.paths.selector) if self.paths.selector else None


async def respond(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    """GET, PUT and PATCH of …/scale; raises StatusError."""
    check_options(request)
    found = _scaled(target, writes.resources.get(target.rtype, target.namespace, target.name))
    if request.method == "GET":
        return _read(found, writes, request)
    options = modify.write_options(request)
    if request.method == "PUT":
        wanted = body_of(request, SCALES)
    elif request.method == "PATCH":
        modify.check_patch_type(target.rtype, request.content_type)
        wanted = _patched(found.shown(), request.content_type, modify.body_value(request))
    else:
        raise status.method_not_allowed()
    return answer(await _written(writes, target, wanted, options), 200, options.warnings)


def _scaled(target: Target, obj: Object) -> _Scaled:
    custom = target.rtype.custom
    paths = _BUILT_IN if custom is None else custom.scale
    assert paths is not None, "only types with a scale are routed here"
    return _Scaled(target.rtype, paths, obj)


def _read(found: _Scaled, writes: AdmittedWrites, request: Request) -> Response:
    shown = _readable(found)
    if not wants_table(request.accept):
        return answer(shown)
    # As upstream: the columns of a custom resource, filled from the Scale.
    rtype = SCALES if found.rtype.custom is None else found.rtype
    return answer(table(rtype, [shown], "Metadata", writes.resources.clock()))


def _readable(found: _Scaled) -> Object:
    shown = found.shown()
    if dig(found.obj, found.paths.spec_replicas) is None:
        raise status.internal(f'the spec replicas field ".{found.paths.spec_replicas}" does not exist')
    return shown


def _patched(shown: Object, kind: str, patch: Any) -> Object:
    if kind == "application/json-patch+json":
        changed = json_patch(shown, patch)
    elif kind in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
        changed = merge_patch(shown, patch)  # without lists, a strategic patch is a merge patch
    else:
        raise status.unsupported_patch()
    if not isinstance(changed, dict):
        raise status.bad_request("the patch does not leave an object")
    return changed


async def _written(writes: AdmittedWrites, target: Target, wanted: Object, options: WriteOptions) -> Object:
    if (kind := wanted.get("kind", "Scale")) != "Scale" or wanted.get("apiVersion", _API_VERSION) != _API_VERSION:
        raise status.bad_request(f"wrong object passed to Scale update: {wanted.get('apiVersion')}, Kind={kind}")
    check_named(wanted, SCALES, target.namespace, target.name)
    old = _scaled(target, writes.resources.get(target.rtype, target.namespace, target.name)).shown()
    check_preconditions(target.rtype, old, wanted["metadata"].get("uid"), None)
    wanted = writes.resources.accepted(SCALES, {**old, **wanted}, options)
    wanted = await writes.admit(target.rtype, "scale", wanted, old, options)
    replicas = _replicas(wanted, target.name)
    version = dig(wanted, "metadata.resourceVersion")

    def change(obj: Object) -> Object:
        paths = _scaled(target, obj).paths
        changed = _with(copy(obj), paths.spec_replicas.split("."), replicas)
        if version:
            changed["metadata"]["resourceVersion"] = version
        return changed

    obj = writes.resources.update(target.rtype, target.namespace, target.name, change, options, "scale")
    return _scaled(target, obj).shown()


def _with(obj: Object, path: list[str], value: int) -> Object:
    step, *rest = path
    inner = obj.get(step)
    obj[step] = _with(inner if isinstance(inner, dict) else {}, rest, value) if rest else value
    return obj


def _replicas(wanted: Object, name: str) -> int:
    """The asked count, 0 when it is left out as Go leaves out zeros; raises 400 or 422."""
    replicas = dig(wanted, "spec.replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise status.bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal into Go struct field '
            "ScaleSpec.spec.replicas of type int32"
        )
    if name_of(wanted) not in ("", name):
        raise status.misnamed(name_of(wanted), name)
    if replicas < 0:
        raise _invalid(name, bad_value("spec.replicas", replicas, "must be greater than or equal to 0"))
    return replicas


def _invalid(name: str, error: FieldError) -> StatusError:
    cause = {"reason": error.reason, "message": error.message, "field": error.field}
    details = {"name": name, "group": "autoscaling", "kind": "Scale", "causes": [cause]}
    return StatusError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: {error}', details)

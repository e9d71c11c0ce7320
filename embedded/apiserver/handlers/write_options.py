"""How a write is to be done, from its query and, for deletions, its body. Queries are checked before they come here.

https://kubernetes.io/docs/reference/using-api/api-concepts/
"""

from __future__ import annotations

from typing import Any

from embedded.apiserver.apimachinery.field_errors import FieldError, not_supported
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.status import bad_request, invalid_options
from embedded.apiserver.registry.resources import DeleteOptions, WriteOptions
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.query_options import deletion_errors
from embedded.apiserver.serialization.request_body import body_object

_MANAGER_LENGTH = 128
_TYPES: dict[str, type] = {
    "gracePeriodSeconds": int,
    "preconditions": dict,
    "propagationPolicy": str,
    "orphanDependents": bool,
    "dryRun": list,
}


def write_options(request: Request) -> WriteOptions:
    return WriteOptions(
        dry_run=bool(request.query.get("dryRun")),
        field_validation=request.query.get("fieldValidation") or "Warn",
        manager=request.query.get("fieldManager") or _program(request),
        user=request.user,
        body_bytes=len(request.body),
    )


def _program(request: Request) -> str:
    """The first word of the User-Agent, which names a manager where the client does not."""
    name = request.headers.get("user-agent", "").partition("/")[0]
    return "".join(character for character in name if character.isprintable())[:_MANAGER_LENGTH]


def delete_options(request: Request) -> DeleteOptions:
    """DeleteOptions from the body, in JSON, YAML or protobuf, or else from the query; raises 400 or 422."""
    body = body_object(request) if request.body.strip() else _from_query(request)
    check_deletion(body)
    grace, preconditions = body.get("gracePeriodSeconds"), body.get("preconditions") or {}
    orphan = body.get("orphanDependents")
    return DeleteOptions(
        grace_seconds=1 if grace is not None and grace < 0 else grace,  # as the API says of negative values
        propagation=body.get("propagationPolicy") or (None if orphan is None else "Orphan" if orphan else "Background"),
        uid=preconditions.get("uid"),
        resource_version=preconditions.get("resourceVersion"),
        dry_run=bool(body.get("dryRun")),
        user=request.user,
    )


def _from_query(request: Request) -> Object:
    query = request.query
    found: Object = {key: query[key] for key in ("propagationPolicy",) if query.get(key)}
    if query.get("dryRun"):
        found["dryRun"] = [query["dryRun"]]
    if query.get("gracePeriodSeconds"):
        found["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    if named := {key: query[key] for key in ("uid", "resourceVersion") if query.get(key)}:
        found["preconditions"] = named
    if query.get("orphanDependents"):
        found["orphanDependents"] = request.flag("orphanDependents")
    return found


def check_deletion(body: Object) -> None:
    """Raises 400 or 422 for DeleteOptions that say nothing, or nothing that there is."""
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request(f"{body['kind']} cannot be handled as DeleteOptions")
    for key, wanted in _TYPES.items():
        value = body.get(key)
        if value is not None and (not isinstance(value, wanted) or (wanted is int and isinstance(value, bool))):
            raise bad_request(f"DeleteOptions cannot be decoded: {key} must be {wanted.__name__}, not {value!r}")
    errors = [*deletion_errors(body.get("propagationPolicy") or None, body.get("orphanDependents") is not None)]
    errors += _dry_run_errors(body.get("dryRun") or [])
    if errors:
        raise invalid_options("DeleteOptions", errors)


def _dry_run_errors(values: list[Any]) -> list[FieldError]:
    return [not_supported("dryRun", values, ("All",))] if any(value != "All" for value in values) else []

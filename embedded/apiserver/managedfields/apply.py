"""Server-side apply: what becomes of an object, and of the ownership of its fields, when somebody applies to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, copy, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import MOST_ERRORS, StatusError, bad_request
from embedded.apiserver.managedfields import managers
from embedded.apiserver.managedfields.fieldsets import Difference, difference, fields_of
from embedded.apiserver.managedfields.managers import Claim, FieldManager, Managers
from embedded.apiserver.managedfields.merging import merged, without
from embedded.apiserver.managedfields.paths import NONE, Paths, shown
from embedded.apiserver.managedfields.structure import ABSENT, problems, whole_schema, with_named_parents
from embedded.apiserver.managedfields.tracking import (
    LAST_APPLIED,
    NOBODYS,
    FieldWriter,
    bare,
    first_managers,
    last_applied_fields,
    managers_of,
    set_managers,
)
from embedded.apiserver.serialization.decoding import decode_object

_KUBECTL = "kubectl"  # the one manager that takes over from client-side apply
_IDENTITY = ("name", "namespace", "uid", "resourceVersion")


@dataclass(frozen=True, slots=True)
class ApplyRequest:
    """One apply: who, with which configuration, and whether to take fields that others own."""

    rtype: ResourceType
    config: Object
    author: FieldWriter
    force: bool = False

    @property
    def owner(self) -> FieldManager:
        return FieldManager(self.author.manager, "Apply", self.author.subresource)


def check(rtype: ResourceType, name: str, config: Object) -> None:
    """Raises 400 for a configuration that cannot be applied at all."""
    if (config.get("apiVersion"), config.get("kind")) != (rtype.api_version, rtype.kind):
        group, _, version = str(config.get("apiVersion") or "").rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={config.get('kind') or ''}")
    if config.get("metadata") is None:
        config["metadata"] = {}
    meta = config["metadata"]
    if not isinstance(meta, dict):
        raise bad_request("metadata of the applied configuration must be a map")
    if meta.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    found = list(islice(problems(whole_schema(rtype), config), MOST_ERRORS))
    if found:
        where = f"{meta.get('namespace') or ''}/{meta.get('name') or name}; {rtype.api_version}, Kind={rtype.kind}"
        told = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {each}" for each in found)
        raise bad_request(f"failed to create typed patch object ({where}): {told}")


def confined(rtype: ResourceType, config: Object, subresource: str) -> Object:
    """The part of a configuration that this path may write; the rest is neither merged nor owned."""
    if not subresource:
        return {key: value for key, value in config.items() if key != "status" or not rtype.has_status}
    meta = config["metadata"]
    if rtype.custom is not None:
        meta = {key: value for key, value in meta.items() if key in _IDENTITY}
    kept = {key: value for key, value in config.items() if key in ("apiVersion", "kind", subresource)}
    return {**kept, "metadata": meta}


def as_kept(rtype: ResourceType, config: Object) -> Object:
    """The configuration with its values in the form they are kept in, quantities above all; raises 400 for wrong types.

    A quantity written differently from the live one is no change and no conflict.
    """
    kept: Object = _overlaid(config, decode_object(rtype, copy(config)).value)
    return kept


def _overlaid(config: Any, kept: Any) -> Any:
    if isinstance(config, dict) and isinstance(kept, dict):
        return {key: _overlaid(value, kept[key]) for key, value in config.items() if key in kept}
    if isinstance(config, list) and isinstance(kept, list) and len(config) == len(kept):
        return [_overlaid(one, other) for one, other in zip(config, kept, strict=True)]
    return kept


def applied(application: ApplyRequest, live: Object) -> Object:
    """The live object ({} for none) after an apply, `managedFields` included; raises 409 with every conflict."""
    try:
        new = _applied(application, live)
    except _Conflicts as found:
        new = _taken_over(application, live, found.paths)
    return _with_note(new, application.config) if application.author.manager == _KUBECTL else new


class _Conflicts(Exception):
    """Fields that others own and that the configuration sets to other values."""

    def __init__(self, paths: Mapping[FieldManager, Paths]) -> None:
        super().__init__()
        self.paths = paths


def _taken_over(application: ApplyRequest, live: Object, conflicts: Mapping[FieldManager, Paths]) -> Object:
    """kubectl may take what its own client-side apply wrote; every other conflict is the caller's to resolve."""
    allowed = NONE
    if application.author.manager == _KUBECTL:
        allowed = last_applied_fields(application.rtype, live)
    left = {owner: paths - allowed for owner, paths in conflicts.items() if paths - allowed}
    if left:
        raise refusal(left)
    return _applied(replace(application, force=True), live)


def refusal(conflicts: Mapping[FieldManager, Paths]) -> StatusError:
    """In the words of the real server."""
    found = [(owner, shown(path)) for owner in sorted(conflicts, key=str) for path in sorted(conflicts[owner])]
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner}", "field": path} for owner, path in found
    ]
    if len(found) == 1:
        message = f"Apply failed with 1 conflict: conflict with {found[0][0]}: {found[0][1]}"
    else:
        lines = []
        for owner in sorted(conflicts, key=str):
            lines += [f"conflicts with {owner}:", *(f"- {shown(path)}" for path in sorted(conflicts[owner]))]
        message = f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, {"causes": causes})


def _applied(application: ApplyRequest, live: Object) -> Object:
    rtype, author, owner = application.rtype, application.author, application.owner
    schema = whole_schema(rtype)
    held = managers_of(live)
    if not held and live:
        held = first_managers(rtype, live, author.now)
    current = bare(live) if live else {}
    config = copy(application.config)
    claim = Claim(fields_of(schema, config) - NOBODYS, rtype.api_version)
    new: Object = merged(schema, current, config)
    if owner in held:
        new = _pruned(schema, new, held[owner].paths, {**held, owner: claim})
    found = difference(schema, current, new)
    others = {other: each for other, each in held.items() if other != owner}
    conflicts = {other: each.paths & found.written for other, each in others.items() if each.paths & found.written}
    if conflicts and not application.force:
        raise _Conflicts(conflicts)
    left = managers.released(others, found.written | found.removed)
    set_managers(new, _with_claim(left, owner, claim, held.get(owner), author, found))
    return new


def _with_claim(
    left: Managers, owner: FieldManager, claim: Claim, before: Claim | None, author: FieldWriter, found: Difference
) -> Managers:
    if not claim.paths:
        return left
    same = before is not None and before.paths == claim.paths and found == Difference()
    time = before.time if same and before is not None else author.time
    return {**left, owner: replace(claim, time=time)}


def _pruned(schema: Object, new: Any, before: Paths, held: Managers) -> Any:
    """Without what this manager applied last time, does not apply any more, and nobody else owns."""
    owned: Paths = frozenset().union(*(claim.paths for claim in held.values()))
    if before <= owned:
        return new
    everything = with_named_parents(schema, fields_of(schema, new))
    bald = _fields_left(schema, without(schema, new, before))
    thinned = _fields_left(schema, without(schema, new, everything - bald - with_named_parents(schema, owned)))
    gone = (everything - thinned) & with_named_parents(schema, before)
    return without(schema, new, gone)


def _fields_left(schema: Object, value: Any) -> Paths:
    return NONE if value is ABSENT else with_named_parents(schema, fields_of(schema, value))


def _with_note(new: Object, config: Object) -> Object:
    """With the note of client-side apply, where there is one, kept true, so that a person may go back to it."""
    meta = new["metadata"]
    annotations = meta.get("annotations") or {}
    if LAST_APPLIED not in annotations:
        return new
    note = encode(_noted(config)).decode() + "\n"
    return {**new, "metadata": {**meta, "annotations": {**annotations, LAST_APPLIED: note}}}


def _noted(config: Object) -> Object:
    meta = dict(config["metadata"])
    kept = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key != LAST_APPLIED}
    return {**config, "metadata": {**meta, **({"annotations": kept} if kept else {})}}

"""`metadata.managedFields`: which manager owns which fields, since when, and through which operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from embedded.apiserver.apimachinery.objects import Object, parse_time
from embedded.apiserver.managedfields.paths import Paths, from_fields, to_fields

Operation = Literal["Apply", "Update"]
_MOST_UPDATERS = 10  # as the real server keeps; the oldest beyond are kept as one
_OLDEST = "ancient-changes"
_FORMAT = "FieldsV1"


@dataclass(frozen=True, slots=True)
class FieldManager:
    """One identity among managers. An applier stays the same across API versions, an updater does not."""

    manager: str
    operation: Operation
    subresource: str = ""
    api_version: str = ""  # of updaters only

    def __str__(self) -> str:
        named = f'"{self.manager}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return f"{named} using {self.api_version}" if self.operation == "Update" else named


@dataclass(frozen=True, slots=True)
class Claim:
    """What an owner owns, in which version its paths are written, and when it last changed anything (RFC 3339)."""

    paths: Paths
    api_version: str
    time: str | None = None


Managers = Mapping[FieldManager, Claim]
NOBODY: Managers = {}


def read(entries: Any) -> Managers:
    """The managers in `managedFields`; nobody where the list is absent or not what it should be."""
    try:
        return dict(_entry(entry) for entry in entries or ())
    except (ValueError, TypeError, AttributeError):
        return NOBODY


def _entry(entry: Object) -> tuple[FieldManager, Claim]:
    operation, api_version = entry.get("operation"), entry.get("apiVersion")
    if operation not in ("Apply", "Update") or not isinstance(api_version, str) or entry.get("fieldsType") != _FORMAT:
        raise ValueError("not an entry of managedFields")
    owner = FieldManager(
        str(entry.get("manager") or ""),
        operation,
        str(entry.get("subresource") or ""),
        api_version if operation == "Update" else "",
    )
    return owner, Claim(from_fields(entry.get("fieldsV1") or {}), api_version, entry.get("time"))


def resets(entries: Any) -> bool:
    """Whether a client asks to forget all managers: with an empty list, or one empty entry."""
    return isinstance(entries, list) and entries in ([], [{}])


def written(managers: Managers) -> list[Object]:
    """`managedFields` in the order the real server keeps: appliers first, then by time."""
    return [_written(owner, managers[owner]) for owner in sorted(managers, key=lambda each: _place(each, managers))]


def _place(owner: FieldManager, managers: Managers) -> tuple[Any, ...]:
    claim = managers[owner]
    return owner.operation, parse_time(claim.time) or 0.0, owner.manager, claim.api_version, owner.subresource


def _written(owner: FieldManager, claim: Claim) -> Object:
    entry = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": claim.api_version,
        "time": claim.time,
        "fieldsType": _FORMAT,
        "fieldsV1": to_fields(claim.paths),
        "subresource": owner.subresource,
    }
    return {key: value for key, value in entry.items() if value not in (None, "")}


def released(managers: Managers, paths: Paths, by: FieldManager | None = None) -> Managers:
    """The managers after all but one have lost these paths; who owns nothing is forgotten."""
    left = {
        owner: claim if owner == by or claim.paths.isdisjoint(paths) else replace(claim, paths=claim.paths - paths)
        for owner, claim in managers.items()
    }
    return {owner: claim for owner, claim in left.items() if claim.paths}


def capped(managers: Managers) -> Managers:
    """At most ten updaters: beyond that, the oldest of a version become one entry."""
    updaters = sorted((owner for owner in managers if owner.operation == "Update"), key=lambda o: _place(o, managers))
    if len(updaters) <= _MOST_UPDATERS:
        return managers
    kept = dict(managers)
    for owner in updaters[: len(updaters) - _MOST_UPDATERS + 1]:
        claim = kept.pop(owner)
        oldest = FieldManager(_OLDEST, "Update", api_version=owner.api_version)
        held = kept.get(oldest)
        kept[oldest] = claim if held is None else replace(claim, paths=held.paths | claim.paths)
    return kept

"""Query options of a request, checked before anything is done: those that Kubernetes refuses, in its own words.

Options nobody knows are ignored, as Kubernetes does. Rules: apimachinery's `meta/v1/validation` and
`meta/internalversion/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.status import StatusError, bad_request, invalid_options
from embedded.apiserver.request.messages import Request

_APPLY = "application/apply-patch+yaml"
_INTEGER = re.compile(r"[+-]?[0-9]+")
_LONGEST_INTEGER = 20  # characters of the longest of 64 bits, its sign included
_INTEGERS = ("limit", "timeoutSeconds", "gracePeriodSeconds")
_INCLUDED = ("", "Metadata", "Object", "None")
_VALIDATIONS = ("", "Ignore", "Strict", "Warn")
_PROPAGATIONS = ("Foreground", "Background", "Orphan", "nil")
_MATCHES = ("Exact", "NotOlderThan", "")
_LONGEST_MANAGER = 128
_KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}


def check_options(request: Request, collection: bool = False) -> None:
    """Raise 400 for an option that cannot be read, 422 for one whose value is not allowed."""
    if not request.query and request.method != "PATCH":
        return
    for name in _INTEGERS:
        if text := request.query.get(name):
            integer(text)
    if request.method == "GET":
        _check_reading(request, collection)
        return
    if request.method == "DELETE" and collection:
        _check_listing(request)
    if errors := list(_write_errors(request)):
        raise invalid_options(_KINDS.get(request.method, "CreateOptions"), errors)


def integer(text: str) -> int:
    """A number of 64 bits; raises 400 for any other text."""
    if not _INTEGER.fullmatch(text):
        raise _unreadable(text, "invalid syntax")
    if len(text) > _LONGEST_INTEGER or not -(2**63) <= int(text) < 2**63:
        raise _unreadable(text, "value out of range")
    return int(text)


def _unreadable(text: str, why: str) -> StatusError:
    return bad_request(f'strconv.ParseInt: parsing "{text}": {why}')


def _write_errors(request: Request) -> Iterator[FieldError]:
    query = request.query
    if request.method == "DELETE":
        yield from deletion_errors(query.get("propagationPolicy") or None, "orphanDependents" in query)
    else:
        yield from _manager_errors(request, query.get("fieldManager", ""))
    if query.get("dryRun", "") not in ("", "All"):
        yield not_supported("dryRun", [query["dryRun"]], ("All",))
    if request.method != "DELETE" and query.get("fieldValidation", "") not in _VALIDATIONS:
        yield not_supported("fieldValidation", query["fieldValidation"], _VALIDATIONS)


def deletion_errors(propagation: str | None, orphans: bool) -> Iterator[FieldError]:
    """What is wrong with the way a deletion is to reach dependents, whether asked by query or by body."""
    if propagation is not None and orphans:
        yield bad_value("propagationPolicy", propagation, "orphanDependents and deletionPropagation cannot be both set")
    if propagation is not None and propagation not in _PROPAGATIONS[:3]:
        yield not_supported("propagationPolicy", propagation, _PROPAGATIONS)


def _manager_errors(request: Request, manager: str) -> Iterator[FieldError]:
    if request.method == "PATCH" and request.content_type == _APPLY:
        if not manager:
            yield required("fieldManager", "is required for apply patch")
    elif request.method == "PATCH" and "force" in request.query:
        yield not_allowed("force", "may not be specified for non-apply patch")
    if len(manager.encode()) > _LONGEST_MANAGER:
        why = f"Too long: may not be more than {_LONGEST_MANAGER} bytes"
        yield FieldError("fieldManager", "FieldValueTooLong", why)
    for at, letter in enumerate(manager):
        if not letter.isprintable():
            yield bad_value("fieldManager", manager, f"invalid character U+{ord(letter):04X} (at position {at})")


def _check_reading(request: Request, collection: bool) -> None:
    query = request.query
    if query.get("includeObject", "") not in _INCLUDED:
        error = bad_value("includeObject", query["includeObject"], "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(str(error))
    if not collection:
        return
    watching = request.flag("watch")
    if not watching:
        _check_listing(request)
    elif errors := list(_watch_errors(request)):
        raise invalid_options("ListOptions", errors)


def _check_listing(request: Request) -> None:
    if errors := list(_list_errors(request)):
        raise invalid_options("ListOptions", errors)
    if request.query.get("continue") and request.query.get("resourceVersion", "") not in ("", "0"):
        raise bad_request("specifying resource version is not allowed when using continue")


def _list_errors(request: Request) -> Iterator[FieldError]:
    query, match = request.query, request.query.get("resourceVersionMatch", "")
    if match:
        if not query.get("resourceVersion"):
            yield not_allowed(
                "resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"
            )
        if query.get("continue"):
            yield not_allowed("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")
        if match not in _MATCHES:
            yield not_supported("resourceVersionMatch", match, _MATCHES)
        if match == "Exact" and query.get("resourceVersion") == "0":
            yield not_allowed(
                "resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            )
    if "sendInitialEvents" in query:
        yield not_allowed("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_errors(request: Request) -> Iterator[FieldError]:
    match, initial = request.query.get("resourceVersionMatch", ""), "sendInitialEvents" in request.query
    if initial and match != "NotOlderThan":
        yield not_allowed(
            "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if match and not initial:
        yield not_allowed(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
    if match not in ("", "NotOlderThan"):
        yield not_supported("resourceVersionMatch", match, ("NotOlderThan",))
    if match and request.query.get("continue"):
        yield not_allowed("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided")

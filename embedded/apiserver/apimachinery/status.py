"""Failures as Kubernetes Status objects.

StatusError (the one exception of this room that is an answer, not a bug)
  whose fault it is shows in the code: 4xx the caller's, 5xx ours or a node's.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value
from embedded.apiserver.apimachinery.objects import Object, encode
from embedded.apiserver.apimachinery.resource_types import ResourceType

MOST_ERRORS = 100  # told of one object: half a million of them would be an answer of 170 MB


class StatusError(Exception):
    """An answer other than success; `body` is the Status object a client receives."""

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details or {}
        self._shows_details = details is not None

    @property
    def body(self) -> Object:
        found: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        kept = {"metadata"} | ({"details"} if self._shows_details else set())
        return {key: value for key, value in found.items() if value not in ("", {}) or key in kept}


def _details(rtype: ResourceType, name: str) -> Object:
    found = {"name": name, "group": rtype.group, "kind": rtype.plural}
    return {key: value for key, value in found.items() if value}


def success(rtype: ResourceType, name: str, uid: str) -> Object:
    """The answer to a delete that took effect."""
    details = {**_details(rtype, name), "uid": uid}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def not_found(rtype: ResourceType, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{rtype.id} "{name}" not found', _details(rtype, name))


def unknown_path() -> StatusError:
    # Empty details still have to be there: kubectl debug looks into those of a 404 and crashes without them.
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(rtype: ResourceType, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{rtype.id} "{name}" already exists', _details(rtype, name))


def conflict(rtype: ResourceType, name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {rtype.id} "{name}": {why}'
    return StatusError(409, "Conflict", message, _details(rtype, name))


def stale(rtype: ResourceType, name: str) -> StatusError:
    return conflict(
        rtype, name, "the object has been modified; please apply your changes to the latest version and try again"
    )


def forbidden(rtype: ResourceType, name: str, why: str, causes: Iterable[Object] = ()) -> StatusError:
    details = _details(rtype, name)
    listed = list(causes)
    if listed:
        details["causes"] = listed
    return StatusError(403, "Forbidden", f'{rtype.id} "{name}" is forbidden: {why}', details)


def invalid(rtype: ResourceType, name: str, errors: Sequence[FieldError]) -> StatusError:
    return _invalid(rtype.kind, rtype.group, name, errors)


def invalid_options(kind: str, errors: Sequence[FieldError]) -> StatusError:
    """A query whose options of this kind, such as CreateOptions, are not allowed."""
    return _invalid(kind, "meta.k8s.io", "", errors)


def invalid_log_options(pod: str, errors: Sequence[FieldError]) -> StatusError:
    return _invalid("PodLogOptions", "", pod, errors)


def _invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> StatusError:
    if len(errors) > MOST_ERRORS:
        errors = [*errors[:MOST_ERRORS], FieldError("", "FieldValueInvalid", f"more than {MOST_ERRORS} errors")]
    text = str(errors[0]) if len(errors) == 1 else "[" + ", ".join(map(str, errors)) + "]"
    causes = [{"reason": error.reason, "message": error.message, "field": error.field} for error in errors]
    details = {"name": name, "group": group, "kind": kind, "causes": causes}
    what = f"{kind}.{group}" if group else kind
    shown = {key: value for key, value in details.items() if value}
    return StatusError(422, "Invalid", f'{what} "{name}" is invalid: {text}', shown)


class Undecodable(StatusError):
    """A body that cannot become an object of its type; `why` alone is what a patch that causes it answers with."""

    def __init__(self, rtype: ResourceType, why: str) -> None:
        what = f'{rtype.kind} in version "{rtype.version}" cannot be handled as a {rtype.kind}'
        super().__init__(400, "BadRequest", f"{what}: {why}")
        self.why = why


def undecodable(rtype: ResourceType, why: str) -> Undecodable:
    return Undecodable(rtype, why)


def unpatchable(patch: Any, error: Undecodable) -> StatusError:
    """A patch whose result cannot become an object of its type, as kube-apiserver words it: of no kind and name."""
    cause = bad_value("patch", encode(patch).decode(), error.why)
    causes = [{"reason": cause.reason, "message": cause.message, "field": cause.field}]
    return StatusError(422, "Invalid", f' "" is invalid: {cause}', {"causes": causes})


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def nameless(name: str) -> StatusError:
    """An object without a name on the path of one."""
    told = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
    return bad_request(told)


def misnamed(name: str, asked: str) -> StatusError:
    return bad_request(f"the name of the object ({name}) does not match the name on the URL ({asked})")


def misplaced() -> StatusError:
    """An object that says to be in another namespace than its path."""
    return bad_request("the namespace of the provided object does not match the namespace sent on the request")


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unsupported_media(message: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", message)


def unsupported_patch() -> StatusError:
    return StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def not_acceptable(message: str) -> StatusError:
    return StatusError(406, "NotAcceptable", message)


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)


def from_the_future(asked: int, current: int) -> StatusError:
    """A resourceVersion this server has not reached: the client should try again, not start over."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return StatusError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details)


def too_many_requests(message: str, causes: list[Object]) -> StatusError:
    return StatusError(429, "TooManyRequests", message, {"causes": causes})


def not_implemented(message: str) -> StatusError:
    return StatusError(501, "NotImplemented", message)


def unexplained(message: str) -> StatusError:
    """A refusal that kube-apiserver gives no reason and no better code."""
    return StatusError(500, "", message)


def internal(message: str = "an internal error occurred; the server's log has the details") -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: {message}")

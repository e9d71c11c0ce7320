"""What every client of the list can do, and how a refusal looks."""

from __future__ import annotations

import json
from typing import Any, Protocol

from embedded.tests.conformance.resources import Object, Resource

# Reasons and codes of metav1.Status; kubectl prints the reason alone.
CODES = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "NotAcceptable": 406,
    "AlreadyExists": 409,
    "Conflict": 409,
    "Expired": 410,
    "Gone": 410,
    "RequestEntityTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "ServiceUnavailable": 503,
    "Timeout": 504,
}


class Refused(Exception):
    """The server said no: code, reason, message and, where the client sees it, the whole Status."""

    def __init__(self, code: int, reason: str, message: str, status: Object | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}")
        self.code, self.reason, self.message = code, reason, message
        self.status = status or {}

    @property
    def causes(self) -> list[Object]:
        found: list[Object] = (self.status.get("details") or {}).get("causes") or []
        return found

    @classmethod
    def from_body(cls, code: int, body: bytes | str) -> Refused:
        try:
            status = json.loads(body)
        except ValueError:
            status = {}
        if not isinstance(status, dict) or status.get("kind") != "Status":
            return cls(code, "", body.decode() if isinstance(body, bytes) else body)
        return cls(code, status.get("reason", ""), status.get("message", ""), status)


class Client(Protocol):
    """One way to speak to a cluster. Every method raises Refused; objects are plain JSON."""

    def create(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object: ...

    def get(self, resource: Resource, namespace: str, name: str) -> Object: ...

    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> list[Object]: ...

    def replace(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object: ...

    def patch(
        self, resource: Resource, target: tuple[str, str], kind: str, body: Any, subresource: str = "", **options: Any
    ) -> Object: ...

    def apply(
        self, resource: Resource, namespace: str, obj: Object, manager: str, force: bool = False, **options: Any
    ) -> Object: ...

    def delete(self, resource: Resource, namespace: str, name: str, **options: Any) -> None: ...

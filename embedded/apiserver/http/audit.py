"""The audit log: one line of JSON for every request, an `Event` of audit.k8s.io/v1 at level Metadata.

Lines gather in memory and are written a moment later, so that a request pays only for its own line.
https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
"""

from __future__ import annotations

import asyncio
import logging
import os
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec

from embedded.apiserver.apimachinery.objects import Clock, Object, decode_object
from embedded.apiserver.http.access import AdmittedRequest
from embedded.apiserver.request.attributes import Attributes
from embedded.apiserver.request.messages import JSON, Response, Stream, Upgraded
from embedded.own_files import open_own

_log = logging.getLogger(__name__)
_FLUSH_SECONDS = 0.2
_FLUSH_LINES = 1024
_NO_STATUS = 400  # from which on the answer's body is a Status that tells what went wrong


class AuditLog:
    """Appends to one file of this user's own. `close` writes what is left. Raises ConfigurationFault and OSError."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._file = os.fdopen(open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab", buffering=0)
        self._clock = clock
        self._lines: list[bytes] = []
        self._timer: asyncio.TimerHandle | None = None

    def record(self, visit: AdmittedRequest, result: Response | Stream | Upgraded) -> None:
        self._lines.append(msgspec.json.encode(event_of(visit, result, self._clock())))
        if len(self._lines) >= _FLUSH_LINES:
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write what has gathered. A log that cannot be written is told about, and stops nobody's work."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        lines, self._lines = self._lines, []
        try:
            self._file.write(b"".join(line + b"\n" for line in lines))
        except OSError as error:
            _log.error("audit log: %d events lost: %s", len(lines), error)

    def close(self) -> None:
        self.flush()
        self._file.close()


def event_of(visit: AdmittedRequest, result: Response | Stream | Upgraded, now: float) -> Object:
    """The event of an answered request, of a watch when it begins; `now` in seconds since the epoch."""
    request, wanted = visit.request, visit.attributes
    given = request.query_string or urlencode(request.query)
    query = f"?{given}" if given else ""
    event: Object = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": str(uuid.uuid4()),
        "stage": "ResponseComplete" if isinstance(result, Response) else "ResponseStarted",
        "requestURI": request.path + query,
        "verb": wanted.verb,
        "user": request.user.as_info(),
        "impersonatedUser": visit.acts_as and visit.acts_as.as_info(),
        "userAgent": request.headers.get("user-agent"),
        "objectRef": _reference(wanted),
        "responseStatus": _status(result),
        "requestReceivedTimestamp": _stamp(visit.received),
        "stageTimestamp": _stamp(now),
        "annotations": _annotations(visit),
    }
    return {key: value for key, value in event.items() if value}


def _annotations(visit: AdmittedRequest) -> dict[str, str]:
    if visit.decision is None:
        return {}
    prefix, decision = "authorization.k8s.io/", visit.decision
    return {f"{prefix}decision": "allow" if decision.allowed else "forbid", f"{prefix}reason": decision.reason}


def _reference(wanted: Attributes) -> Object:
    if not wanted.resource:
        return {}
    found = {
        "resource": wanted.resource,
        "namespace": wanted.namespace,
        "name": wanted.name,
        "apiGroup": wanted.group,
        "apiVersion": wanted.version,
        "subresource": wanted.subresource,
    }
    return {key: value for key, value in found.items() if value}


def _status(result: Response | Stream | Upgraded) -> Object:
    found: dict[str, Any] = {"metadata": {}, "code": result.status}
    if isinstance(result, Response) and result.status >= _NO_STATUS and result.content_type == JSON:
        body = decode_object(result.body)
        found |= {key: body[key] for key in ("status", "message", "reason", "details") if key in body}
    return found


def _stamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

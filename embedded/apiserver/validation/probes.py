"""Field errors of probes and hooks: `validateProbe` and `validateLifecycle` of Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.objects import Object

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_NATURALS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")
_HEADER = re.compile("[-A-Za-z0-9]+")
_HEADER_RULE = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    "regex used for validation is '[-A-Za-z0-9]+')"
)


def lifecycle_errors(path: str, lifecycle: Object, grace: int) -> Iterator[FieldError]:
    """Everything wrong with the hooks of a container that has so many seconds to end."""
    for moment in ("postStart", "preStop"):
        if (handler := lifecycle.get(moment)) is not None:
            yield from _one_handler(f"{path}.{moment}", handler, _HOOK_HANDLERS)
            seconds = (handler.get("sleep") or {}).get("seconds", 0)
            if handler.get("sleep") is not None and not 0 <= seconds <= grace:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
                yield bad_value(f"{path}.{moment}.sleep", seconds, detail)


def _one_handler(path: str, holder: Object, kinds: tuple[str, ...]) -> Iterator[FieldError]:
    used = [key for key in kinds if holder.get(key) is not None]
    if not used:
        yield required(path, "must specify a handler type")
    for key in used[1:]:
        yield not_allowed(f"{path}.{key}", "may not specify more than 1 handler type")
    if used and used[0] != "sleep":
        yield from _handler_errors(f"{path}.{used[0]}", holder[used[0]], used[0])


def probe_errors(path: str, probe: Object, kind: str) -> Iterator[FieldError]:
    """Everything wrong with a defaulted probe; `kind` is the field that holds it, such as `livenessProbe`."""
    yield from _one_handler(path, probe, _HANDLERS)
    for key in _NATURALS:
        if probe.get(key, 0) < 0:
            yield bad_value(f"{path}.{key}", probe[key], "must be greater than or equal to 0")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe":
        if grace is not None:
            yield bad_value(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif probe.get("successThreshold", 1) != 1:
        yield bad_value(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler_errors(path: str, handler: Object, kind: str) -> Iterator[FieldError]:
    if kind == "exec":
        if not handler.get("command"):
            yield required(f"{path}.command")
        return
    if kind == "httpGet":
        if not handler.get("path"):
            yield required(f"{path}.path")
        if handler.get("scheme") not in _SCHEMES:
            yield not_supported(f"{path}.scheme", handler.get("scheme"), _SCHEMES)
        for header in handler.get("httpHeaders") or ():
            if not _HEADER.fullmatch(header.get("name") or ""):
                yield bad_value(f"{path}.httpHeaders", header.get("name") or "", _HEADER_RULE)
    port = handler.get("port", 0)
    yield from (names.port_name if isinstance(port, str) else names.port_number)(f"{path}.port", port)

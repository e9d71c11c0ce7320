"""Field errors of probes. Rules and words: `validateProbe` in Kubernetes' pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator

from local.apiserver import names
from local.apiserver.objects import Object
from local.apiserver.status import FieldError, bad_value, not_allowed, not_supported, required

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_NATURALS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")


def probe_errors(path: str, probe: Object, kind: str) -> Iterator[FieldError]:
    """Everything wrong with a defaulted probe; `kind` is the field that holds it, such as `livenessProbe`."""
    used = [key for key in _HANDLERS if probe.get(key) is not None]
    if not used:
        yield required(path, "must specify a handler type")
    for key in used[1:]:
        yield not_allowed(f"{path}.{key}", "may not specify more than 1 handler type")
    if used:
        yield from _handler_errors(f"{path}.{used[0]}", probe[used[0]], used[0])
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
    port = handler.get("port", 0)
    yield from (names.port_name if isinstance(port, str) else names.port_number)(f"{path}.port", port)

"""The volume in which a pod that asks has its socket: there its agent tells it of its end, and hears of checkpoints.

A volume of the pod's own needs no right that Pod Security `restricted` withholds, and is no other pod's.
"""

from __future__ import annotations

from typing import Any

from admission.core.podfields import Document, Pod, annotations_of, spec, with_spec
from model.job.labels import CHECKPOINT_SOCKET

VOLUME = "sublet-socket"
FOLDER = "/var/run/sublet"
VARIABLE = "SUBLET_SOCKET_DIR"
_SIZE = "1Mi"
"""In memory, so that a full disk takes no socket away; charged to the pod."""


def wants_socket(pod: Pod) -> bool:
    """Whether its annotation says so, for a system that has such sockets."""
    on_windows = (spec(pod).get("os") or {}).get("name") == "windows"
    return annotations_of(pod).get(CHECKPOINT_SOCKET) == "true" and not on_windows


def with_socket(pod: Pod) -> Document:
    """The pod with the volume, where it wants one; what it says itself of volume, place and variable stays."""
    volumes = list(spec(pod).get("volumes") or ())
    if not wants_socket(pod) or any(each.get("name") == VOLUME for each in volumes):
        return dict(pod)
    made = {"name": VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": _SIZE}}
    containers = [_mounted(each) for each in spec(pod).get("containers") or ()]
    return with_spec(pod, {"volumes": [*volumes, made], "containers": containers})


def _mounted(container: Document) -> Document:
    mounts, variables = container.get("volumeMounts") or [], container.get("env") or []
    if any(str(each.get("mountPath", "")).rstrip("/") == FOLDER for each in mounts):
        return container
    made: dict[str, Any] = {**container, "volumeMounts": [*mounts, {"name": VOLUME, "mountPath": FOLDER}]}
    if all(each.get("name") != VARIABLE for each in variables):
        made["env"] = [*variables, {"name": VARIABLE, "value": FOLDER}]
    return made

"""READY, STATUS and RESTARTS of a pod as kubectl shows them.

Source: kubernetes `pkg/printers/internalversion/printers.go`, printPod.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery.objects import Object, being_deleted, condition, dig, parse_time


@dataclass(frozen=True, slots=True)
class Starting:
    """How far the init containers are: why they are not through (empty when they are), and what they are up to."""

    reason: str
    ready: int
    seen: tuple[Object, ...]  # statuses up to the one that is not through
    sidecars: tuple[Object, ...]


def pod_ready(pod: Object) -> tuple[int, int]:
    """Ready containers and all containers; init containers that go on running count among both."""
    starting = _starting(pod)
    ready = starting.ready
    if _started(pod, starting):
        ready += sum(_serves(status) for status in _statuses(pod))
    sidecars = sum(_is_sidecar(container) for container in dig(pod, "spec.initContainers") or ())
    return ready, len(dig(pod, "spec.containers") or ()) + sidecars


def pod_reason(pod: Object) -> str:
    """The one word that says most about a pod: its phase, or why it is not there yet, or what ended it."""
    reason = dig(pod, "status.reason") or dig(pod, "status.phase") or ""
    if (condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    starting = _starting(pod)
    reason = starting.reason or reason
    if _started(pod, starting):
        reason = _container_reason(pod, reason)
    if being_deleted(pod):
        if dig(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if dig(pod, "status.phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def pod_restarts(pod: Object) -> tuple[int, float | None]:
    """How often containers were restarted, and when the last of them ended (seconds), if that is known.

    Init containers count while they are what the pod is at; afterwards only those that go on running do.
    """
    starting = _starting(pod)
    counted = [*starting.sidecars, *_statuses(pod)] if _started(pod, starting) else starting.seen
    ends = [parse_time(dig(status, "lastState.terminated.finishedAt")) for status in counted]
    return (
        sum(int(status.get("restartCount") or 0) for status in counted),
        max((end for end in ends if end is not None), default=None),
    )


def _statuses(pod: Object) -> Iterable[Object]:
    return dig(pod, "status.containerStatuses") or ()


def _is_sidecar(container: Object | None) -> bool:
    return (container or {}).get("restartPolicy") == "Always"


def _serves(status: Object) -> bool:
    state = status.get("state") or {}
    ended = state.get("terminated") is not None or (state.get("waiting") or {}).get("reason")
    return bool(status.get("ready")) and state.get("running") is not None and not ended


def _started(pod: Object, starting: Starting) -> bool:
    return not starting.reason or (condition(pod, "Initialized") or {}).get("status") == "True"


def _starting(pod: Object) -> Starting:
    specs = {c.get("name"): c for c in dig(pod, "spec.initContainers") or ()}
    seen, sidecars, ready, reason = [], [], 0, ""
    for index, status in enumerate(dig(pod, "status.initContainerStatuses") or ()):
        seen.append(status)
        sidecar = _is_sidecar(specs.get(status.get("name")))
        if sidecar:
            sidecars.append(status)
        if sidecar and status.get("started") and not _succeeded(status):
            ready += bool(status.get("ready"))
        elif not _succeeded(status):
            reason = f"Init:{_obstacle(status.get('state') or {}) or f'{index}/{len(specs)}'}"
            break
    return Starting(reason, ready, tuple(seen), tuple(sidecars))


def _succeeded(status: Object) -> bool:
    ended = dig(status, "state.terminated")
    return ended is not None and ended.get("exitCode", 0) == 0


def _obstacle(state: Object) -> str:
    """What keeps an init container from ending well; empty while it is simply its turn."""
    if state.get("terminated"):
        return _ending(state["terminated"])
    held = str((state.get("waiting") or {}).get("reason") or "")
    return "" if held == "PodInitializing" else held


def _ending(ended: dict[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_reason(pod: Object, reason: Any) -> Any:
    running = False
    for status in reversed([*_statuses(pod)]):
        state = status.get("state") or {}
        held, ended = state.get("waiting") or {}, state.get("terminated")
        if held.get("reason"):
            reason = held["reason"]
        elif ended is not None:
            reason = _ending(ended)
        else:
            running = running or _serves(status)
    if reason == "Completed" and running:
        ready = (condition(pod, "Ready") or {}).get("status") == "True"
        return "Running" if ready else "NotReady"
    return reason

"""The STATUS and RESTARTS of a pod as kubectl shows them.

Source: kubernetes `pkg/printers/internalversion/printers.go`, printPod.
"""

from typing import Any

from local.apiserver.objects import Object, being_deleted, condition, dig, parse_time


def pod_reason(pod: Object) -> str:
    """The one word that says most about a pod: its phase, or why it is not there yet, or what ended it."""
    reason = dig(pod, "status.reason") or dig(pod, "status.phase") or ""
    scheduled = condition(pod, "PodScheduled") or {}
    if scheduled.get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    reason = _init_reason(pod) or _container_reason(pod, reason)
    if being_deleted(pod):
        if dig(pod, "status.reason") == "NodeLost":
            return "Unknown"
        if dig(pod, "status.phase") not in ("Succeeded", "Failed"):
            return "Terminating"
    return str(reason)


def _init_reason(pod: Object) -> str:
    """Why the init containers are not through; empty when they are, or when there are none."""
    specs = {c.get("name"): c for c in dig(pod, "spec.initContainers") or ()}
    for index, status in enumerate(dig(pod, "status.initContainerStatuses") or ()):
        state = status.get("state") or {}
        sidecar = (specs.get(status["name"]) or {}).get("restartPolicy") == "Always"
        ended, held = state.get("terminated"), state.get("waiting") or {}
        if (ended and ended.get("exitCode") == 0) or (sidecar and status.get("started")):
            continue
        if ended:
            return f"Init:{_ending(ended)}"
        if held.get("reason") and held["reason"] != "PodInitializing":
            return f"Init:{held['reason']}"
        return f"Init:{index}/{len(specs)}"
    return ""


def _ending(ended: dict[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_reason(pod: Object, reason: Any) -> Any:
    running = False
    for status in reversed(dig(pod, "status.containerStatuses") or []):
        state = status.get("state") or {}
        held, ended = state.get("waiting") or {}, state.get("terminated")
        if held.get("reason"):
            reason = held["reason"]
        elif ended:
            reason = _ending(ended)
        elif status.get("ready") and "running" in state:
            running = True
    if reason == "Completed" and running:
        ready = (condition(pod, "Ready") or {}).get("status") == "True"
        return "Running" if ready else "NotReady"
    return reason


def pod_restarts(pod: Object) -> tuple[int, float | None]:
    """How often containers were restarted, and when the last of them ended (seconds), if that is known."""
    statuses = [*(dig(pod, "status.initContainerStatuses") or ()), *(dig(pod, "status.containerStatuses") or ())]
    ends = [parse_time(dig(status, "lastState.terminated.finishedAt")) for status in statuses]
    return (
        sum(int(status.get("restartCount") or 0) for status in statuses),
        max((end for end in ends if end is not None), default=None),
    )

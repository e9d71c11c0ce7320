"""A pod's conditions, as the kubelet words them. Pure.

Source: kubernetes pkg/kubelet/status/generate.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from embedded.node.objects.pod import ReportedCondition
from embedded.node.objects.times import stamp
from embedded.node.pods.pod_view import Gate, PodView, initialized

_DISRUPTION = "DisruptionTarget"
RESIZE_CONDITIONS = ("PodResizePending", "PodResizeInProgress")


def conditions(view: PodView, current: str, known: Sequence[ReportedCondition], now: datetime) -> list[dict[str, Any]]:
    unready, closed = view.unready, _closed_gates(view.gates)
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(current)
    not_ready = {
        "reason": finished or "ContainersNotReady",
        "message": "" if finished else f"containers with unready status: [{' '.join(unready)}]",
    }
    gated = {"reason": "ReadinessGatesNotReady", "message": ", ".join(closed)}
    incomplete = [each.name for each in view.init_containers if not initialized(each)]
    not_initialized = {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }
    containers_ready = not unready and not finished
    wanted: list[tuple[str, bool, dict[str, str]]] = [
        ("PodReadyToStartContainers", view.made and not view.over, {"reason": "", "message": ""}),
        ("Initialized", view.initialized, not_initialized),
        ("Ready", containers_ready and not closed, gated if containers_ready else not_ready),
        ("ContainersReady", containers_ready, not_ready),
        ("PodScheduled", True, {}),
    ]
    since = {(each.type, each.status): each.last_transition_time for each in known}
    conditions = [
        _condition(kind, holds, why, since.get((kind, str(holds))) or stamp(now)) for kind, holds, why in wanted
    ]
    conditions += _disruption(view, since.get((_DISRUPTION, "True")) or stamp(now))
    return conditions + _resize(view, {kind: since.get((kind, "True")) or stamp(now) for kind in RESIZE_CONDITIONS})


def _resize(view: PodView, changed: dict[str, str]) -> list[dict[str, Any]]:
    """Those that hold; a strategic merge keeps the others unless it is told to delete them."""
    states = zip(RESIZE_CONDITIONS, (view.resize.pending, view.resize.in_progress), strict=True)
    told: list[dict[str, Any]] = []
    for kind, why in states:
        if why is not None:
            words = {"reason": why.reason or None, "message": why.message or None}
            told.append({"type": kind, "status": "True", "lastTransitionTime": changed[kind], **words})
        elif view.resize.told:
            told.append({"$patch": "delete", "type": kind})
    return told


def _disruption(view: PodView, changed: str) -> list[dict[str, Any]]:
    if not view.disruption:
        return []
    words = {"reason": "TerminationByKubelet", "message": view.disruption}
    return [{"type": _DISRUPTION, "status": "True", "lastTransitionTime": changed, **words}]


def _closed_gates(gates: Sequence[Gate]) -> list[str]:
    """Sentences about those that are not True."""
    words = []
    for gate in gates:
        if gate.status is None:
            words.append(f'corresponding condition of pod readiness gate "{gate.condition}" does not exist.')
        elif gate.status != "True":
            words.append(f'the status of pod readiness gate "{gate.condition}" is not "True", but {gate.status}')
    return words


def _condition(kind: str, holds: bool, why: dict[str, str], changed: str) -> dict[str, Any]:
    # A strategic merge keeps fields that are not sent: null takes back the words of an earlier False.
    words = {"reason": None, "message": None} if holds else {key: value or None for key, value in why.items()}
    return {"type": kind, "status": str(holds), "lastTransitionTime": changed, **words}

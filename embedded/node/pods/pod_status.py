"""The status of a pod, from the states of its containers. Pure.

Source: kubernetes pkg/kubelet/kubelet_pods.go (getPhase).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import (
    PodContainer,
    PodObject,
    ReportedCondition,
    ReportedContainer,
    Resources,
    TerminatedState,
)
from embedded.node.objects.times import moment, stamp
from embedded.node.pods.admission import Rejection
from embedded.node.pods.conditions import conditions
from embedded.node.pods.pod_view import (
    LOST_EXIT_CODE,
    ContainerView,
    PodView,
    Running,
    State,
    Terminated,
    Waiting,
    succeeded,
)

CONTAINER_ID_SCHEME = "process://"


def phase(view: PodView, restart_policy: str | None) -> str:
    """Pending, Running, Succeeded or Failed."""
    if view.failure:
        return "Failed"
    if view.over:
        return "Succeeded" if all(succeeded(each) for each in view.containers) else "Failed"
    if not view.initialized:
        broken = any(each.ended and each.ended.exit_code for each in view.init_containers if not each.sidecar)
        return "Failed" if broken and restart_policy == "Never" else "Pending"
    if any(not each.running and each.ended is None for each in view.containers):
        return "Pending"
    if any(each.running for each in view.containers):
        return "Running"
    if restart_policy in (None, "", "Always"):
        return "Running"
    if all(succeeded(each) for each in view.containers):
        return "Succeeded"
    return "Failed" if restart_policy == "Never" else "Running"


def pod_status(
    view: PodView, restart_policy: str | None, known: Sequence[ReportedCondition], now: datetime
) -> dict[str, Any]:
    """The body of a strategic patch of `status`: everything the kubelet owns, container statuses whole.

    `known` are the conditions reported before; one that did not change keeps its transition time.
    """
    current = phase(view, restart_policy)
    status: dict[str, Any] = {
        "phase": current,
        "conditions": conditions(view, current, known, now),
        "hostIP": view.host_address,
        "hostIPs": [{"ip": view.host_address}],
        "startTime": stamp(view.started_at),
        "qosClass": view.qos.value,
        "containerStatuses": [_container_status(each) for each in view.containers],
    }
    if view.made:
        status |= {"podIP": view.address, "podIPs": [{"ip": view.address}]}
    if view.init_containers:
        status["initContainerStatuses"] = [
            _container_status(each if each.sidecar else _step(each)) for each in view.init_containers
        ]
    if view.ephemeral_containers:
        status["ephemeralContainerStatuses"] = [_container_status(each) for each in view.ephemeral_containers]
    if view.failure:
        status |= {"reason": view.failure.reason, "message": view.failure.message}
    return status


def rejected_status(qos: KubernetesQoS, rejection: Rejection, now: datetime) -> dict[str, Any]:
    """A pod that was not admitted: Failed, with no container ever created."""
    return {
        "phase": "Failed",
        "reason": rejection.reason,
        "message": rejection.message,
        "qosClass": qos.value,
        "startTime": stamp(now),
    }


def restored(name: str, image: str, reported: ReportedContainer | None, now: datetime) -> ContainerView:
    """The view with which a new run of the node continues: what ran before is lost, what ended has ended."""
    if reported is None or reported.state is None:
        return ContainerView(name, image)
    count, previous = reported.restart_count, reported.last_state and reported.last_state.terminated
    if reported.state.terminated:
        return ContainerView(name, image, _read(reported.state.terminated), restart_count=count)
    if reported.state.running:
        lost = Terminated(
            LOST_EXIT_CODE,
            "ContainerStatusUnknown",
            now,
            moment(reported.state.running.started_at),
            (reported.container_id or "").removeprefix(CONTAINER_ID_SCHEME),
            "The node was restarted and the process was lost",
        )
        return ContainerView(name, image, lost, restart_count=count)
    return ContainerView(name, image, last=_read(previous) if previous else None, restart_count=count)


def _step(view: ContainerView) -> ContainerView:
    """An init container is ready when it is through, and never counts as started."""
    return msgspec.structs.replace(view, ready=succeeded(view), started=False)


def _container_status(view: ContainerView) -> dict[str, Any]:
    status: dict[str, Any] = {
        "name": view.name,
        "image": view.image,
        "imageID": "",
        "ready": view.ready,
        "started": view.started,
        "restartCount": view.restart_count,
        "state": _state(view.state),
        "lastState": _state(view.last) if view.last else {},
    }
    if view.allocated is not None:
        status |= _amounts(view.allocated, view.resources or view.allocated)
    if view.container_id:
        status["containerID"] = CONTAINER_ID_SCHEME + view.container_id
    return status


def _amounts(allocated: Resources, in_force: Resources) -> dict[str, Any]:
    told = {key: amounts for key in ("limits", "requests") if (amounts := getattr(in_force, key))}
    requested = {"allocatedResources": allocated.requests} if allocated.requests else {}
    return {**requested, "resources": told}


def _state(state: State) -> dict[str, Any]:
    if isinstance(state, Waiting):
        return {"waiting": _present({"reason": state.reason, "message": state.message})}
    if isinstance(state, Running):
        return {"running": {"startedAt": stamp(state.started_at)}}
    told = {
        "reason": state.reason,
        "message": state.message,
        "startedAt": stamp(state.started_at) if state.started_at else None,
        "finishedAt": stamp(state.finished_at) if state.finished_at else None,
        "containerID": CONTAINER_ID_SCHEME + state.container_id if state.container_id else None,
    }
    return {"terminated": {"exitCode": state.exit_code, **_present(told)}}


def _present(fields: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}


def _read(reported: TerminatedState) -> Terminated:
    return Terminated(
        reported.exit_code,
        reported.reason,
        moment(reported.finished_at),
        moment(reported.started_at),
        reported.container_id.removeprefix(CONTAINER_ID_SCHEME),
        reported.message,
    )


def initial_views(pod: PodObject, now: datetime) -> tuple[tuple[ContainerView, ...], tuple[ContainerView, ...]]:
    """Views of containers and init containers at the start of a worker."""
    waiting = Waiting("PodInitializing") if pod.spec.init_containers else Waiting()
    main = _views(pod.spec.containers, pod.status.container_statuses, now, waiting)
    init = _views(pod.spec.init_containers or [], pod.status.init_container_statuses, now, Waiting("PodInitializing"))
    return main, init


def _views(
    containers: Sequence[PodContainer], reported: Sequence[ReportedContainer] | None, now: datetime, waiting: Waiting
) -> tuple[ContainerView, ...]:
    known = {each.name: each for each in reported or []}
    views = ((each.sidecar, restored(each.name, each.image, known.get(each.name), now)) for each in containers)
    return tuple(
        msgspec.structs.replace(view, sidecar=sidecar, state=waiting if isinstance(view.state, Waiting) else view.state)
        for sidecar, view in views
    )

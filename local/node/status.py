"""The status of a pod, from the states of its containers. Pure.

Source: kubernetes pkg/kubelet/kubelet_pods.go (getPhase) and pkg/kubelet/status/generate.go (conditions).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from local.node.admission import Rejection
from local.node.environment import HOST_ADDRESS
from local.node.podobject import PodObject, ReportedCondition, ReportedContainer, TerminatedState
from model.qos import KubernetesQoS

CONTAINER_ID_SCHEME = "process://"
LOST_EXIT_CODE = 137


class Waiting(msgspec.Struct, frozen=True):
    """Not running now: not yet started, backing off, or refused."""

    reason: str = "ContainerCreating"
    message: str = ""


class Running(msgspec.Struct, frozen=True):
    started_at: datetime


class Terminated(msgspec.Struct, frozen=True):
    """The end of one run; times are None for a run that never began."""

    exit_code: int
    reason: str
    finished_at: datetime | None
    started_at: datetime | None = None
    container_id: str = ""
    message: str = ""


State = Waiting | Running | Terminated


class ContainerView(msgspec.Struct, frozen=True):
    """One container as its status shows it; `last` is the run before the current state."""

    name: str
    image: str
    state: State = Waiting()
    last: Terminated | None = None
    restart_count: int = 0
    container_id: str = ""

    @property
    def running(self) -> bool:
        return isinstance(self.state, Running)

    @property
    def ended(self) -> Terminated | None:
        """The end that counts: the current one, or the last while waiting to start again."""
        if isinstance(self.state, Terminated):
            return self.state
        return self.last if isinstance(self.state, Waiting) else None


class PodView(msgspec.Struct, frozen=True):
    """All that a pod's status is made of. `over` means that no container will ever start again."""

    qos: KubernetesQoS
    started_at: datetime
    containers: tuple[ContainerView, ...]
    init_containers: tuple[ContainerView, ...] = ()
    over: bool = False
    failure: Rejection | None = None

    @property
    def initialized(self) -> bool:
        return all(isinstance(view.state, Terminated) and view.state.exit_code == 0 for view in self.init_containers)


def phase(view: PodView, restart_policy: str | None) -> str:
    """Pending, Running, Succeeded or Failed."""
    if view.failure:
        return "Failed"
    if view.over:
        return "Succeeded" if all(_succeeded(each) for each in view.containers) else "Failed"
    if not view.initialized:
        broken = any(each.ended and each.ended.exit_code for each in view.init_containers)
        return "Failed" if broken and restart_policy == "Never" else "Pending"
    if any(each.running for each in view.containers):
        return "Running"
    if any(each.ended is None for each in view.containers):
        return "Pending"
    if restart_policy in (None, "", "Always"):
        return "Running"
    if all(_succeeded(each) for each in view.containers):
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
        "conditions": _conditions(view, current, known, now),
        "hostIP": HOST_ADDRESS,
        "hostIPs": [{"ip": HOST_ADDRESS}],
        "podIP": HOST_ADDRESS,
        "podIPs": [{"ip": HOST_ADDRESS}],
        "startTime": stamp(view.started_at),
        "qosClass": view.qos.value,
        "containerStatuses": [_container_status(each) for each in view.containers],
    }
    if view.init_containers:
        status["initContainerStatuses"] = [_container_status(each) for each in view.init_containers]
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


def stamp(moment: datetime) -> str:
    """A metav1.Time."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _succeeded(view: ContainerView) -> bool:
    return isinstance(view.state, Terminated) and view.state.exit_code == 0


def _conditions(view: PodView, current: str, known: Sequence[ReportedCondition], now: datetime) -> list[dict[str, Any]]:
    unready = [each.name for each in view.containers if not each.running]
    finished = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(current)
    not_ready = {
        "reason": finished or "ContainersNotReady",
        "message": "" if finished else f"containers with unready status: [{' '.join(unready)}]",
    }
    incomplete = [each.name for each in view.init_containers if not _succeeded(each)]
    not_initialized = {
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }
    wanted: list[tuple[str, bool, dict[str, str]]] = [
        ("Initialized", view.initialized, not_initialized),
        ("Ready", not unready and not finished, not_ready),
        ("ContainersReady", not unready and not finished, not_ready),
        ("PodScheduled", True, {}),
    ]
    since = {(each.type, each.status): each.last_transition_time for each in known}
    return [_condition(kind, holds, why, since.get((kind, str(holds))) or stamp(now)) for kind, holds, why in wanted]


def _condition(kind: str, holds: bool, why: dict[str, str], changed: str) -> dict[str, Any]:
    # A strategic merge keeps fields that are not sent: null takes back the words of an earlier False.
    words = {"reason": None, "message": None} if holds else {key: value or None for key, value in why.items()}
    return {"type": kind, "status": str(holds), "lastTransitionTime": changed, **words}


def _container_status(view: ContainerView) -> dict[str, Any]:
    status: dict[str, Any] = {
        "name": view.name,
        "image": view.image,
        "imageID": "",
        "ready": view.running,
        "started": view.running,
        "restartCount": view.restart_count,
        "state": _state(view.state),
        "lastState": _state(view.last) if view.last else {},
    }
    if view.container_id:
        status["containerID"] = CONTAINER_ID_SCHEME + view.container_id
    return status


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


def moment(text: str | None) -> datetime | None:
    """A metav1.Time read back; None when absent or unreadable."""
    try:
        return datetime.fromisoformat(text) if text else None
    except ValueError:
        return None


def initial_views(pod: PodObject, now: datetime) -> tuple[tuple[ContainerView, ...], tuple[ContainerView, ...]]:
    """Views of containers and init containers at the start of a worker."""
    waiting = Waiting("PodInitializing") if pod.spec.init_containers else Waiting()
    main = _views(pod.spec.containers, pod.status.container_statuses, now, waiting)
    return main, _views(pod.spec.init_containers or [], pod.status.init_container_statuses, now, Waiting())


def _views(
    containers: Sequence[Any], reported: Sequence[ReportedContainer] | None, now: datetime, waiting: Waiting
) -> tuple[ContainerView, ...]:
    known = {each.name: each for each in reported or []}
    views = (restored(each.name, each.image, known.get(each.name), now) for each in containers)
    return tuple(
        msgspec.structs.replace(view, state=waiting) if isinstance(view.state, Waiting) else view for view in views
    )

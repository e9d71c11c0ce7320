"""A pod's phase, conditions and container statuses follow from the states of its containers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import ReportedCondition
from embedded.node.pods.admission import Rejection
from embedded.node.pods.pod_status import initial_views, phase, pod_status
from embedded.node.pods.pod_view import ContainerView, Gate, PodView, Running, State, Terminated, Waiting

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
RUNS, WAITS = Running(NOW), Waiting()
DONE = Terminated(0, "Completed", NOW, NOW, "c1")
BROKEN = Terminated(3, "Error", NOW, NOW, "c1")
BACKS_OFF = Waiting("CrashLoopBackOff")


def view(*states: State, last: Terminated | None = None, init: tuple[State, ...] = (), **more: Any) -> PodView:
    containers = tuple(
        ContainerView(
            f"c{number}",
            "busybox",
            state,
            last if isinstance(state, Waiting) else None,
            ready=isinstance(state, Running),
        )
        for number, state in enumerate(states)
    )
    inits = tuple(ContainerView(f"i{number}", "busybox", state) for number, state in enumerate(init))
    return PodView(KubernetesQoS.BURSTABLE, NOW, containers, inits, **more)


def with_sidecar(state: State, **more: Any) -> PodView:
    """One running container beside a sidecar in the given state."""
    sidecar = ContainerView("s", "busybox", state, sidecar=True, **more)
    return msgspec.structs.replace(view(RUNS), init_containers=(sidecar,))


@pytest.mark.parametrize(
    ("pod_view", "policy", "expected"),
    [
        pytest.param(view(WAITS), "Always", "Pending", id="not started"),
        pytest.param(view(RUNS), "Always", "Running", id="running"),
        pytest.param(view(RUNS, WAITS), "Always", "Pending", id="one runs, one not yet started"),
        pytest.param(view(RUNS, DONE), "Never", "Running", id="one of two is done"),
        pytest.param(view(DONE), "Never", "Succeeded", id="done"),
        pytest.param(view(DONE), "OnFailure", "Succeeded", id="done, on failure"),
        pytest.param(view(DONE), "Always", "Running", id="done, about to start again"),
        pytest.param(view(DONE, BROKEN), "Never", "Failed", id="one broken"),
        pytest.param(view(BROKEN), "OnFailure", "Running", id="broken, about to start again"),
        pytest.param(view(BACKS_OFF, last=BROKEN), "Always", "Running", id="backing off"),
        pytest.param(view(BACKS_OFF, last=DONE), "OnFailure", "Running", id="backing off is not success"),
        pytest.param(view(DONE, over=True), "Always", "Succeeded", id="stopped after success"),
        pytest.param(view(BROKEN, over=True), "Always", "Failed", id="stopped"),
        pytest.param(
            view(DONE, over=True, failure=Rejection("DeadlineExceeded", "")), "Never", "Failed", id="deadline"
        ),
        pytest.param(view(WAITS, init=(RUNS,)), "Always", "Pending", id="initialising"),
        pytest.param(view(WAITS, init=(BROKEN,)), "Never", "Failed", id="init broke for good"),
        pytest.param(view(WAITS, init=(BROKEN,)), "Always", "Pending", id="init is tried again"),
        pytest.param(with_sidecar(RUNS, started=False), "Always", "Pending", id="sidecar not yet started"),
        pytest.param(with_sidecar(RUNS, started=True), "Always", "Running", id="sidecar started"),
        pytest.param(with_sidecar(BROKEN), "Never", "Running", id="sidecar starts again"),
        pytest.param(view(RUNS, init=(DONE,)), "Always", "Running", id="initialised"),
    ],
)
def test_phase(pod_view: PodView, policy: str, expected: str) -> None:
    """The kubelet's getPhase."""
    assert phase(pod_view, policy) == expected


@pytest.mark.parametrize(
    ("pod_view", "condition", "expected"),
    [
        pytest.param(view(RUNS), "Ready", ("True", None), id="running is ready"),
        pytest.param(view(RUNS, WAITS), "Ready", ("False", "ContainersNotReady"), id="one not yet"),
        pytest.param(view(DONE), "ContainersReady", ("False", "PodCompleted"), id="succeeded"),
        pytest.param(view(BROKEN), "Ready", ("False", "PodFailed"), id="failed"),
        pytest.param(
            view(WAITS, init=(RUNS,)), "Initialized", ("False", "ContainersNotInitialized"), id="initialising"
        ),
        pytest.param(view(RUNS), "PodScheduled", ("True", None), id="bound to us, so scheduled"),
        pytest.param(
            with_sidecar(RUNS, started=True), "Ready", ("False", "ContainersNotReady"), id="sidecar not ready"
        ),
        pytest.param(view(RUNS, gates=(Gate("g", "True"),)), "Ready", ("True", None), id="gate open"),
        pytest.param(
            view(RUNS, gates=(Gate("g", "False"),)), "Ready", ("False", "ReadinessGatesNotReady"), id="gate closed"
        ),
        pytest.param(
            view(RUNS, gates=(Gate("g", None),)), "Ready", ("False", "ReadinessGatesNotReady"), id="gate missing"
        ),
        pytest.param(view(RUNS, gates=(Gate("g", None),)), "ContainersReady", ("True", None), id="gates do not count"),
        pytest.param(view(WAITS, made=False), "PodReadyToStartContainers", ("False", None), id="volumes not there"),
        pytest.param(
            view(BROKEN, disruption="low"), "DisruptionTarget", ("True", "TerminationByKubelet"), id="evicted by us"
        ),
    ],
)
def test_condition(pod_view: PodView, condition: str, expected: tuple[str, str | None]) -> None:
    """Status and reason of each condition."""
    status = pod_status(pod_view, "Never", [], NOW)
    found = next(each for each in status["conditions"] if each["type"] == condition)
    assert (found["status"], found["reason"]) == expected


def test_init_container_status() -> None:
    """A step is ready once it is through; a sidecar is as ready and started as its probes say."""
    step = ContainerView("step", "busybox", DONE)
    sidecar = ContainerView("side", "busybox", RUNS, sidecar=True, ready=True, started=True)
    built = msgspec.structs.replace(view(RUNS), init_containers=(step, sidecar))
    statuses = pod_status(built, "Always", [], NOW)["initContainerStatuses"]
    assert [(each["ready"], each["started"]) for each in statuses] == [(True, False), (True, True)]


def test_transition_time_stays() -> None:
    """A condition that did not change keeps its time; one that did gets now."""
    known = [ReportedCondition("Ready", "True", "2029-01-01T00:00:00Z"), ReportedCondition("Initialized", "False", "x")]
    times = {
        each["type"]: each["lastTransitionTime"] for each in pod_status(view(RUNS), "Always", known, NOW)["conditions"]
    }
    assert times["Ready"] == "2029-01-01T00:00:00Z"
    assert times["Initialized"] == "2030-01-02T03:04:05Z"


def test_container_status() -> None:
    """A container that backs off shows why it waits and how it last ended, whole."""
    backing_off = ContainerView("main", "busybox", Waiting("CrashLoopBackOff", "back-off 10s"), BROKEN, 4, "c1")
    status = pod_status(PodView(KubernetesQoS.BURSTABLE, NOW, (backing_off,)), "Always", [], NOW)
    assert status["containerStatuses"] == [
        {
            "name": "main",
            "image": "busybox",
            "imageID": "",
            "ready": False,
            "started": False,
            "restartCount": 4,
            "containerID": "process://c1",
            "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}},
            "lastState": {
                "terminated": {
                    "exitCode": 3,
                    "reason": "Error",
                    "startedAt": "2030-01-02T03:04:05Z",
                    "finishedAt": "2030-01-02T03:04:05Z",
                    "containerID": "process://c1",
                }
            },
        }
    ]


@pytest.mark.parametrize(
    ("reported", "state", "last", "restart_count"),
    [
        pytest.param(None, "ContainerCreating", None, 0, id="never seen"),
        pytest.param(
            {"restartCount": 2, "state": {"running": {"startedAt": "2029-01-01T00:00:00Z"}}},
            "ContainerStatusUnknown",
            None,
            2,
            id="ran: lost with the node",
        ),
        pytest.param(
            {"restartCount": 1, "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
            "Completed",
            None,
            1,
            id="ended",
        ),
        pytest.param(
            {
                "restartCount": 3,
                "state": {"waiting": {}},
                "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
            },
            "ContainerCreating",
            "Error",
            3,
            id="was backing off",
        ),
    ],
)
def test_restored(pod: Any, reported: dict[str, Any] | None, state: str, last: str | None, restart_count: int) -> None:
    """A new run of the node continues from the reported status."""
    statuses = [{"name": "main", **reported}] if reported else []
    (restored,), _ = initial_views(pod(status={"containerStatuses": statuses}), NOW)
    assert not isinstance(restored.state, Running)
    assert restored.state.reason == state
    assert (restored.last.reason if restored.last else None) == last
    assert restored.restart_count == restart_count

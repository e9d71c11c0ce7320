"""The life of a simulated pod, stage by stage, with time as a parameter."""

from __future__ import annotations

import pytest

from embedded.node.objects.pod import KubeletPodSpec, PodContainer, PodMetadata, PodObject
from embedded.node.pods.pod_status import pod_status
from local.simnodes import lifecycle
from local.simnodes.lifecycle import EXIT_CODE, RUN_SECONDS, USAGE, PodLife, PodPlan, PodStage
from local.simnodes.settings import Pace
from local.simnodes.usage import UsageShare
from model.fault import ConfigurationFault
from model.qos import KubernetesQoS

NOW = 1_000.0
PACE = Pace(start=2.0, stop=1.0)


def pod(policy: str = "Never", deadline: int | None = None, **annotations: str) -> PodObject:
    keys = {"run": RUN_SECONDS, "code": EXIT_CODE, "usage": USAGE}
    named = {keys[name]: text for name, text in annotations.items()}
    spec = KubeletPodSpec(
        containers=[PodContainer("a", "i")],
        init_containers=[PodContainer("first"), PodContainer("side", restart_policy="Always")],
        restart_policy=policy,
        active_deadline_seconds=deadline,
    )
    return PodObject(PodMetadata("p", "d", "u", annotations=named), spec)


def walk(source: PodObject, until: float) -> list[tuple[float, PodLife]]:
    """(time, life) of every stage up to a time."""
    plan = lifecycle.plan_of(source, PACE)
    found = [(NOW, lifecycle.admitted(plan, NOW))]
    while (at := found[-1][1].next_at) is not None and at <= until:
        found.append((at, lifecycle.advanced(found[-1][1], plan, at)))
    return found


def phase(source: PodObject, life: PodLife) -> str:
    shown = lifecycle.view(source, life, KubernetesQoS.BURSTABLE)
    return str(pod_status(shown, source.spec.restart_policy, (), lifecycle.moment(NOW))["phase"])


@pytest.mark.parametrize(
    ("case", "source", "expected"),
    [
        ("until it is deleted", pod(), [(0, "Pending"), (2, "Running")]),
        ("a run that ends well", pod(run="30"), [(0, "Pending"), (2, "Running"), (32, "Succeeded")]),
        ("a run that fails", pod(run="30", code="3"), [(0, "Pending"), (2, "Running"), (32, "Failed")]),
        ("a deadline that comes first", pod(deadline=9, run="30"), [(0, "Pending"), (2, "Running"), (9, "Failed")]),
        (
            "OnFailure starts again what failed, later each time",
            pod("OnFailure", run="10", code="1"),
            [(t, p) for t, p in zip((0, 2, 12, 14, 24, 34, 44, 64), ("Pending", *["Running"] * 7), strict=True)],
        ),
        ("OnFailure lets a good end be", pod("OnFailure", run="1"), [(0, "Pending"), (2, "Running"), (3, "Succeeded")]),
    ],
)
def test_a_life(case: str, source: PodObject, expected: list[tuple[float, str]]) -> None:
    """When each stage begins, and what the API then shows."""
    assert [(at - NOW, phase(source, life)) for at, life in walk(source, NOW + 64)] == expected, case


def test_a_restart_is_counted_and_shown() -> None:
    """With the last end, and a back-off after the second."""
    source = pod("Always", run="1", code="7")
    stages = [life for _, life in walk(source, NOW + 20)]
    waits = [life for life in stages if life.stage is PodStage.BACKING_OFF]
    view = lifecycle.view(source, waits[1], KubernetesQoS.BURSTABLE).containers[0]
    status = pod_status(lifecycle.view(source, waits[1], KubernetesQoS.BURSTABLE), "Always", (), lifecycle.moment(NOW))
    shown = status["containerStatuses"][0]
    assert shown["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert shown["lastState"]["terminated"]["exitCode"] == 7
    assert view.restart_count == 1


def test_a_running_pod_is_ready_with_its_sidecar() -> None:
    """And its init container is through."""
    source = pod()
    status = pod_status(
        lifecycle.view(source, walk(source, NOW + 5)[-1][1], KubernetesQoS.BURSTABLE),
        "Never",
        (),
        lifecycle.moment(NOW),
    )
    assert {c["type"]: c["status"] for c in status["conditions"]}["Ready"] == "True"
    assert [next(iter(each["state"])) for each in status["initContainerStatuses"]] == ["terminated", "running"]


@pytest.mark.parametrize(("grace", "at"), [(30.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_deletion(grace: float, at: float) -> None:
    """Ends after the pace's moment, or sooner where the grace is shorter."""
    plan = lifecycle.plan_of(pod(), PACE)
    running = walk(pod(), NOW + 5)[-1][1]
    stopping = lifecycle.deleted(running, plan, grace, NOW + 100)
    assert stopping.next_at == NOW + 100 + at
    gone = lifecycle.advanced(stopping, plan, NOW + 101)
    assert gone.stage is PodStage.GONE and gone.next_at is None
    assert gone.end is not None and gone.end.exit_code == 143


def test_a_second_deletion_hastens_and_never_delays() -> None:
    """As with a shorter grace period."""
    plan = lifecycle.plan_of(pod(), PACE)
    first = lifecycle.deleted(walk(pod(), NOW + 5)[-1][1], plan, 30, NOW)
    assert lifecycle.deleted(first, plan, 30, NOW + 0.8).next_at == NOW + 1
    assert lifecycle.deleted(first, plan, 0, NOW + 0.2).next_at == NOW + 0.2


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("0.8", UsageShare(0.8, 0.8)),
        ("cpu=0.5", UsageShare(0.5, 0.6)),
        ("memory=1, cpu=2", UsageShare(2.0, 1.0)),
    ],
)
def test_usage(text: str, share: UsageShare) -> None:
    """One number for both, or each by name; 0.6 of what is not named."""
    assert lifecycle.plan_of(pod(usage=text), PACE).share == share


@pytest.mark.parametrize(
    ("key", "text"),
    [("run", "long"), ("run", "-1"), ("run", "nan"), ("code", "1.5"), ("code", "256"), ("usage", "gpu=1"),
     ("usage", "cpu=many"), ("usage", "11"), ("usage", "")],
)  # fmt: skip
def test_an_annotation_that_cannot_be_read(key: str, text: str) -> None:
    """Names itself, what it says and what to write."""
    with pytest.raises(ConfigurationFault, match=r"annotation sublet.dev/simulated-.*cannot be read .*write"):
        lifecycle.plan_of(pod(**{key: text}), PACE)


def test_runs_pass_faster_when_time_does() -> None:
    """Simulated seconds are the model's."""
    assert lifecycle.plan_of(pod(run="600"), Pace(factor=60.0)).run_seconds == 10.0


def test_a_pod_that_ran_already_goes_on() -> None:
    """Where an earlier simulation left it; an end that was missed comes at once."""
    plan: PodPlan = lifecycle.plan_of(pod(run="30"), PACE)
    assert lifecycle.resumed(plan, NOW, 0, NOW + 10).next_at == NOW + 30
    assert lifecycle.resumed(plan, NOW, 0, NOW + 100).next_at == NOW + 100

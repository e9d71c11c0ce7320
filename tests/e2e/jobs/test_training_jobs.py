"""TrainingJobs: each phase and field, and what becomes of them, with real processes and real kubectl."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import pytest

from tests.e2e.conftest import until
from tests.e2e.jobs.manifests import SLEEPS, Jobs, Manifest, nowhere, template, training

pytestmark = pytest.mark.slow


def test_what_the_status_says(jobs: Jobs) -> None:
    """Of one that runs: what it has, its pods by set, since when, and why; each field as it is documented."""
    sized = {"minReplicas": 2, "replicaResources": {"cpu": "20m", "memory": "32Mi"}}
    plain = {"spec": {"terminationGracePeriodSeconds": 1, "containers": [template(SLEEPS)["spec"]["containers"][0]]}}
    plain["spec"]["containers"][0].pop("resources")
    name = jobs.submit(training("told", "", resources=sized, template=plain))
    jobs.reaches(name, "Running")
    jobs.all_run("told", 2)
    assert until(lambda: jobs.status(name)["replicaStatuses"]["worker"]["running"] == 2)
    status = jobs.status(name)
    nodes = sorted({each["spec"]["nodeName"] for each in jobs.pods("told").values()})
    assert status["allocatedResources"] == {"gpus": 0, "cpu": "40m", "memory": "64Mi", "nodes": nodes}
    assert status["replicaStatuses"]["worker"] == {"running": 2, "succeeded": 0, "failed": 0, "pending": 0}
    assert status["startTime"] and "endTime" not in status
    conditions = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert conditions == {"Accepted": ("True", "Valid"), "Running": ("True", "MinimumRunning")}
    assert all(
        {"type", "status", "lastTransitionTime", "reason", "message"} <= {*each} for each in status["conditions"]
    )
    assert all({"type", "reason", "message", "timestamp"} <= {*each} for each in status["events"])
    limits = jobs.pods("told")["told-worker-0"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "20m", "memory": "32Mi"}
    jobs.delete(name)


FAILS = "import sys; sys.exit(9)"
PHASES: dict[str, tuple[Manifest, str, str]] = {
    "Pending": (
        {"schedulingConfig": {"priorityClassName": "unheard-of"}},
        "InvalidSpec",
        "no PriorityClass unheard-of",
    ),
    "Queued": ({"template": nowhere()}, "WaitingForNodes", "nodes are available"),
    "Running": ({"template": template(SLEEPS)}, "MinimumRunning", "pods run or ran"),
    "Suspended": ({"template": template(SLEEPS), "suspend": True}, "Suspended", "spec.suspend is true"),
    "Succeeded": ({"template": template("")}, "Succeeded", ""),
    "Failed": ({"template": template(FAILS), "maxRetry": 1}, "TooManyFailures", "failed with exit code 9"),
}


@pytest.mark.parametrize("phase", PHASES)
def test_each_phase(jobs: Jobs, phase: str) -> None:
    """With its reason and what it says to people; the printed column says the phase, too."""
    spec, reason, words = PHASES[phase]
    short = f"is-{phase.lower()}"
    name = jobs.submit(training(short, "", **spec))
    jobs.reaches(name, phase)
    assert until(lambda: words in jobs.status(name).get("message", "")), jobs.status(name)
    assert jobs.status(name)["reason"] == reason
    assert jobs.cluster.kubectl("get", name, "--no-headers").split()[1] == phase
    told = jobs.cluster.sublet("explain", "job", short).stdout
    assert f"TrainingJob {short}  {phase}" in told and reason in told, told
    jobs.delete(name)


LINGERS = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def test_an_evicted_job_is_suspended_and_queued_again(jobs: Jobs) -> None:
    """While its pods take their time to go it is Suspended; then it waits as any other, and runs."""
    lingers = template(LINGERS, terminationGracePeriodSeconds=4)
    name = jobs.submit(training("lingers", "", template=lingers))
    jobs.all_run("lingers", 2)
    jobs.reaches(name, "Running")
    before = jobs.uids("lingers")
    jobs.evict("lingers-worker-0")
    assert jobs.reaches(name, "Suspended", 10.0)["reason"] == "Restarted"
    assert until(lambda: jobs.run_anew("lingers", 2, before))
    status = jobs.reaches(name, "Running")
    assert (status["failures"], status["evictions"]) == (0, 1)
    assert [each["reason"] for each in status["events"]][-1] == "MinimumRunning"
    assert "pod lingers-worker-0 was evicted" in [each["message"] for each in status["events"]]
    jobs.delete(name)


def test_ten_evictions_end_no_job(jobs: Jobs) -> None:
    name = jobs.submit(training("evicted", SLEEPS))
    for number in range(10):
        jobs.all_run("evicted", 2)
        jobs.reaches(name, "Running")
        before = jobs.uids("evicted")
        jobs.cluster.kubectl("delete", "pod", f"evicted-worker-{number % 2}", "--wait=false")
        assert until(lambda before=before: jobs.run_anew("evicted", 2, before)), (number, jobs.status(name))
    status = jobs.reaches(name, "Running")
    assert (status["failures"], status["evictions"]) == (0, 10)
    jobs.delete(name)


@pytest.mark.parametrize("kind", ["service", "podgroups.scheduling.sigs.k8s.io"])
def test_what_is_deleted_comes_back(jobs: Jobs, kind: str) -> None:
    """At once, while its pods run on."""
    short = f"keeps-{kind[:3]}"
    name = jobs.submit(training(short, SLEEPS))
    jobs.all_run(short, 2)
    before, made = jobs.uids(short), json.loads(jobs.cluster.kubectl("get", kind, "-l", f"sublet.dev/job-name={short}", "-o", "json"))["items"]  # fmt: skip
    (found,) = made
    jobs.cluster.kubectl("delete", kind, found["metadata"]["name"])
    path = ("get", kind, found["metadata"]["name"], "-o", "jsonpath={.metadata.uid}")
    assert until(lambda: jobs.cluster.run(*path).stdout not in ("", found["metadata"]["uid"]))
    assert jobs.uids(short) == before and jobs.phase(name) == "Running"
    jobs.delete(name)


def test_a_scheduler_by_another_name(jobs: Jobs) -> None:
    """Any that is served; and the policy of the PriorityClass comes with it (Volcano's issue 3642)."""
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "patient"}}
    jobs.cluster.apply(json.dumps({**kind, "value": 5100, "preemptionPolicy": "Never"}))
    terms = {"schedulerName": "koord-scheduler", "priorityClassName": "patient"}
    name = jobs.submit(training("other-name", SLEEPS, schedulingConfig=terms))
    jobs.reaches(name, "Running")
    spec = jobs.pods("other-name")["other-name-worker-0"]["spec"]
    assert (spec["schedulerName"], spec["priority"], spec["preemptionPolicy"]) == ("koord-scheduler", 5100, "Never")
    jobs.delete(name)


def test_an_elastic_job_grows(jobs: Jobs) -> None:
    """From its minimum, without a restart; what is told of it says so."""
    elastic = {
        "enabled": True,
        "minWorkers": 1,
        "maxWorkers": 3,
        "scalePolicy": {"scaleUpStep": 1, "scaleUpCooldown": "1s"},
    }
    name = jobs.submit(training("grows", SLEEPS, replicas=1, elasticConfig=elastic))
    assert until(lambda: jobs.run_anew("grows", 3, set())), jobs.status(name)
    status = jobs.status(name)
    assert (status["failures"], status["evictions"], status["run"]["number"]) == (0, 0, 0)
    assert [each["message"] for each in status["events"] if each["reason"] == "Grown"] == [
        "worker: 1 → 2 pods", "worker: 2 → 3 pods",
    ]  # fmt: skip
    jobs.delete(name)


def test_a_wait_that_is_too_long(jobs: Jobs) -> None:
    """It waits on, before others, and says so."""
    name = jobs.submit(training("waits", "", template=nowhere(), schedulingConfig={"maxWaitTime": "2s"}))
    jobs.reaches(name, "Queued")

    def told() -> bool:
        return "WaitTimeExceeded" in [each["type"] for each in jobs.status(name).get("conditions", [])]

    assert until(told), jobs.status(name)
    assert jobs.phase(name) == "Queued" and jobs.status(name)["message"]
    events = ("get", "events", "--field-selector", "reason=WaitTimeExceeded", "-o", "name")
    assert until(lambda: jobs.cluster.kubectl(*events))
    jobs.delete(name)


def test_a_scheduler_that_is_killed_loses_and_doubles_nothing(jobs: Jobs) -> None:
    """kill -9 right after a pod went, three times over: one restart each, whichever process noticed."""
    name = jobs.submit(training("survives", SLEEPS, replicas=3))
    for number in range(3):
        assert until(lambda: jobs.phase(name) == "Running" and jobs.run_anew("survives", 3, set()), 60.0), number
        before, scheduler = jobs.uids("survives"), jobs.cluster.endpoints["programs"]["scheduler"]
        jobs.cluster.kubectl("delete", "pod", "survives-worker-0", "--wait=false")
        time.sleep(0.1 * number)
        os.kill(scheduler, signal.SIGKILL)
        assert until(lambda before=before: jobs.run_anew("survives", 3, before), 60.0), jobs.status(name)
    jobs.reaches(name, "Running")
    assert (jobs.status(name)["failures"], jobs.status(name)["evictions"]) == (0, 3)
    jobs.delete(name)


def test_suspended_and_resumed(jobs: Jobs) -> None:
    name = jobs.submit(training("paused", SLEEPS))
    jobs.reaches(name, "Running")

    def patch(suspend: bool) -> None:
        jobs.cluster.kubectl("patch", name, "--type=merge", "-p", json.dumps({"spec": {"suspend": suspend}}))

    patch(True)
    jobs.reaches(name, "Suspended")
    assert until(lambda: jobs.pods("paused") == {})
    patch(False)
    jobs.reaches(name, "Running")
    assert len(jobs.pods("paused")) == 2
    jobs.delete(name)
    assert until(lambda: jobs.pods("paused") == {})


def test_a_job_of_the_past_is_deleted_with_what_it_had(jobs: Jobs) -> None:
    name = jobs.submit(training("short", "", ttlSecondsAfterFinished=2))
    gone: Callable[[], bool] = lambda: jobs.cluster.run("get", name).returncode != 0 and jobs.pods("short") == {}  # noqa: E731
    assert until(gone, 60.0)
    assert until(lambda: jobs.cluster.run("get", "service", "short").returncode != 0)


REFUSED: dict[str, tuple[Manifest, str]] = {
    "an unknown type": (training("bad", "", kind="AbacusJob"), "spec.jobType"),
    "more at least than at most": (
        training("bad", "", resources={"minReplicas": 3, "maxReplicas": 2}), "maxReplicas must not be below minReplicas",
    ),
    "less than nothing": (training("bad", "", replicas=-1), "spec.resources.minReplicas"),
    "no template": (training("bad", "", template=None), "template"),
    "fewer workers at most than at least": (
        training("bad", "", elasticConfig={"enabled": True, "minWorkers": 3, "maxWorkers": 2}), "maxWorkers",
    ),
    "a wait that is no time": (training("bad", "", schedulingConfig={"maxWaitTime": "soon"}), "maxWaitTime"),
    "a policy of nobody": (
        training("bad", "", schedulingConfig={"preemptionPolicy": "PreemptAll"}), "preemptionPolicy",
    ),
    "GPUs below none": (
        training("bad", "", resources={"minReplicas": 1, "replicaResources": {"gpu": -1}}), "gpu",
    ),
    "an empty template": (training("bad", "", template={"spec": {"containers": []}}), "spec.template.spec.containers"),
}  # fmt: skip


@pytest.mark.parametrize(("manifest", "words"), REFUSED.values(), ids=REFUSED)
def test_what_the_definition_refuses(jobs: Jobs, manifest: Manifest, words: str) -> None:
    jobs.submit(training("good", ""))  # the definition is served
    assert words in jobs.cluster.apply(json.dumps(manifest), check=False).stderr


def test_what_only_the_controller_can_tell(jobs: Jobs) -> None:
    """One condition, one Event, and nothing is made; once it is mended the job runs."""
    name = jobs.submit(training("pricey", "", schedulingConfig={"priority": 4242}))
    until(lambda: jobs.status(name).get("reason") == "InvalidSpec")
    message = "spec.schedulingConfig.priority: no PriorityClass has the value 4242"
    assert message in jobs.status(name)["message"] and jobs.pods("pricey") == {}
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p4242"}}
    jobs.cluster.apply(json.dumps({**kind, "value": 4242}))
    jobs.reaches(name, "Succeeded")
    assert all(pod["spec"]["priority"] == 4242 for pod in jobs.pods("pricey").values())

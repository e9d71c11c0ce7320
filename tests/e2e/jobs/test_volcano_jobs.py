"""Volcano's Jobs by their policies, phases and counts, as Volcano reports them, with real processes and real kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import until
from tests.e2e.jobs.manifests import SLEEPS, Jobs, Manifest, nowhere, task, template, volcano

pytestmark = pytest.mark.slow


def test_a_killed_pod_restarts_the_job_once(jobs: Jobs) -> None:
    name = jobs.submit(volcano("killed", SLEEPS))
    jobs.reaches(name, "Running")
    assert until(lambda: jobs.run_anew("killed", 4, set()))
    before = jobs.uids("killed")
    jobs.cluster.kubectl("delete", "pod", "killed-worker-1", "--wait=false")
    assert until(lambda: jobs.run_anew("killed", 4, before)), jobs.status(name)
    status = jobs.reaches(name, "Running")
    assert (status["version"], status.get("retryCount", 0), status["running"]) == (1, 0, 4)
    assert jobs.passed(name) == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert {each["phase"]["Running"] for each in status["taskStatusCount"].values()} == {1, 3}
    jobs.delete(name)


def test_three_failures_end_a_job(jobs: Jobs) -> None:
    """Two restarts; what it is told says which pod failed."""
    fails = "import os, sys, time; time.sleep(0.3); sys.exit(7 if os.environ['RANK'] == '2' else time.sleep(600))"
    name = jobs.submit(volcano("fails", fails))
    jobs.reaches(name, "Failed", 90.0)
    status = jobs.status(name)
    assert (status["retryCount"], status["version"]) == (3, 2)
    assert status["state"]["message"] == "pod fails-worker-1 failed with exit code 7"
    assert until(lambda: all(pod["status"]["phase"] == "Failed" for pod in jobs.pods("fails").values()))


def test_ten_evictions_do_not(jobs: Jobs) -> None:
    """By the eviction API, by policy RestartJob: ten restarts, and not one failure of the three."""
    name = jobs.submit(volcano("evicted", SLEEPS))
    for number in range(10):
        jobs.all_run("evicted", 4)
        jobs.reaches(name, "Running")
        before = jobs.uids("evicted")
        jobs.evict(f"evicted-worker-{number % 3}")
        assert until(lambda before=before: jobs.run_anew("evicted", 4, before)), (number, jobs.status(name))
    status = jobs.reaches(name, "Running")
    assert (status.get("retryCount", 0), status["version"], status["running"]) == (0, 10, 4)
    jobs.delete(name)


def once(folder: Path, code: int) -> str:
    """A worker 0 that fails the first time it runs; all else runs on."""
    return f"""
import os, pathlib, sys, time
flag = pathlib.Path({str(folder)!r}) / "failed"
if os.environ["VC_TASK_INDEX"] == "0" and os.environ["RANK"] != "0" and not flag.exists():
    time.sleep(1.0)
    flag.touch()
    sys.exit({code})
time.sleep(600)
"""


ENDS = {
    "AbortJob": ("Aborting", "Aborted"),
    "TerminateJob": ("Terminating", "Terminated"),
    "CompleteJob": ("Completing", "Completed"),
}


@pytest.mark.parametrize("action", ENDS)
def test_rules_that_end_a_job(jobs: Jobs, tmp_path: Path, action: str) -> None:
    """What ran is stopped; what failed stays, for its logs."""
    policies = [{"event": "PodFailed", "action": action}]
    name = jobs.submit(volcano(f"ends-{action.lower()}", once(tmp_path, 5), policies=policies))
    jobs.reaches(name, ENDS[action][-1])
    assert jobs.passed(name)[-2:] == [*ENDS[action]]
    left = jobs.pods(f"ends-{action.lower()}").values()
    assert [each["status"]["phase"] for each in left] == ["Failed"]


REPLACED = {"RestartPod": ("worker-0",), "RestartTask": ("worker-0", "worker-1", "worker-2")}


@pytest.mark.parametrize("action", REPLACED)
def test_rules_that_restart_a_part(jobs: Jobs, tmp_path: Path, action: str) -> None:
    """By the exit code; the others go on as they are, and it was one failure."""
    short = action.lower()
    name = jobs.submit(volcano(short, once(tmp_path, 5), policies=[{"exitCode": 5, "action": action}]))
    assert until(lambda: jobs.run_anew(short, 4, set()))
    before = {pod: each["metadata"]["uid"] for pod, each in jobs.pods(short).items()}
    assert until(lambda: (tmp_path / "failed").exists())
    replaced = {f"{short}-{member}" for member in REPLACED[action]}

    def done() -> bool:
        pods = jobs.pods(short)
        fresh = {pod for pod, each in pods.items() if each["metadata"]["uid"] != before.get(pod)}
        return fresh == replaced and all(each["status"].get("phase") == "Running" for each in pods.values())

    assert until(done), jobs.status(name)
    jobs.reaches(name, "Running")
    assert (jobs.status(name)["retryCount"], jobs.status(name)["running"]) == (1, 4)
    jobs.delete(name)


def test_a_task_that_waits_for_another(jobs: Jobs) -> None:
    """Its pods are made once that runs, and the gang needs no more together than there are."""
    job = volcano("ordered", SLEEPS)
    job["spec"]["tasks"][1]["dependsOn"] = {"name": ["master"]}
    name = jobs.submit(job)
    assert until(lambda: jobs.run_anew("ordered", 4, set())), jobs.status(name)
    made = {pod: each["metadata"]["creationTimestamp"] for pod, each in jobs.pods("ordered").items()}
    started = jobs.pods("ordered")["ordered-master-0"]["status"]["startTime"]
    assert all(at >= started for pod, at in made.items() if "worker" in pod)
    jobs.delete(name)


FAILS = "import time, sys; time.sleep(1); sys.exit(4)"
ENDING = [{"event": "PodFailed", "action": "TerminateJob"}]


def of(*tasks: Manifest, **spec: Any) -> Manifest:
    """The part of a job's spec that says its tasks and rules; no plugin is needed."""
    least = sum(each["replicas"] for each in tasks)
    return {"tasks": [*tasks], "minAvailable": least, "plugins": {}, "policies": [], **spec}


POLICIES: dict[str, tuple[Manifest, str]] = {
    "any event that is bad": (
        of(task("worker", 2, FAILS), policies=[{"event": "*", "action": "TerminateJob"}]), "Terminated",
    ),
    "several events": (
        of(task("worker", 2, FAILS), policies=[{"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}]), "Aborted",
    ),
    "no exit code of a rule": (
        of(task("worker", 1, FAILS), policies=[{"exitCode": 5, "action": "AbortJob"}, *ENDING]), "Terminated",
    ),
    "the task before the job": (
        of(
            task("master", 1, SLEEPS),
            task("worker", 1, FAILS, policies=[{"event": "PodFailed", "action": "CompleteJob"}]),
            policies=ENDING,
        ),
        "Completed",
    ),
    "a task that is complete": (
        of(
            task("master", 1, "", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]),
            task("worker", 2, SLEEPS),
            policies=ENDING,
        ),
        "Completed",
    ),
    "a pod that runs for too long": (
        of(task("worker", 1, SLEEPS), policies=[{"event": "PodRunning", "action": "TerminateJob", "timeout": "2s"}]),
        "Terminated",
    ),
    "a pod that waits for too long": (
        of(
            {"name": "worker", "replicas": 2, "template": nowhere()},
            policies=[{"event": "PodPending", "action": "AbortJob", "timeout": "2s"}],
        ),
        "Aborted",
    ),
    "no rule, and fewer than are needed": (of(task("worker", 2, FAILS)), "Failed"),
    "no rule, and enough that succeeded": (
        of(task("worker", 1, FAILS, minAvailable=0), task("other", 2, ""), minAvailable=2), "Completed",
    ),
    "as many successes as are wanted": (of(task("one", 1, ""), task("worker", 2, SLEEPS), minSuccess=1), "Completed"),
}  # fmt: skip


@pytest.mark.parametrize("case", POLICIES)
def test_what_follows(jobs: Jobs, case: str) -> None:
    """By a rule's event, or without one by what the pods did."""
    spec, phase = POLICIES[case]
    short = f"case-{list(POLICIES).index(case)}"
    name = jobs.submit(volcano(short, "", **spec))
    jobs.reaches(name, phase)
    jobs.delete(name)


def test_a_pod_of_which_nothing_is_known(jobs: Jobs) -> None:
    """As where its node is unreachable."""
    rules = [{"event": "Unknown", "action": "AbortJob"}]
    name = jobs.submit(volcano("lost", "", **of({"name": "w", "replicas": 1, "template": nowhere()}, policies=rules)))
    assert until(lambda: "lost-w-0" in jobs.pods("lost"))
    unknown = json.dumps({"status": {"phase": "Unknown"}})
    jobs.cluster.kubectl("patch", "pod", "lost-w-0", "--subresource=status", "--type=merge", "-p", unknown)
    jobs.reaches(name, "Aborted", 30.0)
    jobs.delete(name)


def test_a_job_whose_time_is_over(jobs: Jobs) -> None:
    """It goes with all that it had."""
    name = jobs.submit(volcano("passing", "", ttlSecondsAfterFinished=2))
    assert until(lambda: jobs.cluster.run("get", name).returncode != 0 and jobs.pods("passing") == {}, 60.0)
    assert until(lambda: jobs.cluster.run("get", "configmap", "passing-svc").returncode != 0)


def test_suspended_and_resumed_by_annotation(jobs: Jobs) -> None:
    name = jobs.submit(volcano("paused", SLEEPS))
    jobs.reaches(name, "Running")
    for told, phase, pods in (("true", "Aborted", 0), ("false", "Running", 4)):
        jobs.cluster.kubectl("annotate", "--overwrite", name, f"sublet.dev/suspend={told}")
        jobs.reaches(name, phase)
        assert until(lambda pods=pods: len(jobs.pods("paused")) == pods)
    assert jobs.status(name).get("retryCount", 0) == 0
    jobs.delete(name)


def command(jobs: Jobs, job: str, action: str) -> None:
    """As `vcctl job suspend` and `resume` write it."""
    found = json.loads(jobs.cluster.kubectl("get", job, "-o", "json"))
    target = {"apiVersion": found["apiVersion"], "kind": "Job", "name": found["metadata"]["name"], "controller": True}
    target["uid"] = found["metadata"]["uid"]
    metadata = {"generateName": f"{target['name']}-{action.lower()}-", "ownerReferences": [target]}
    body = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata, "target": target}
    done = jobs.cluster.posted(
        "/apis/bus.volcano.sh/v1alpha1/namespaces/default/commands", json.dumps(body | {"action": action})
    )
    assert done.returncode == 0, done.stderr


def test_commands_of_volcano(jobs: Jobs) -> None:
    """Each is obeyed once, and gone then; one that changes nothing says so."""
    name = jobs.submit(volcano("ordered-about", SLEEPS))
    jobs.reaches(name, "Running")
    orders = (
        ("AbortJob", "Aborted"),
        ("ResumeJob", "Running"),
        ("RestartJob", "Running"),
        ("CompleteJob", "Completed"),
    )
    for action, phase in orders:
        version = jobs.status(name)["version"]
        command(jobs, name, action)
        left = ("get", "commands.bus.volcano.sh", "-o", "name")
        assert until(lambda left=left: jobs.cluster.kubectl(*left) == "")
        found = jobs.reaches(name, phase)
        assert found["version"] - version == (action in ("ResumeJob", "RestartJob"))
    assert jobs.status(name).get("retryCount", 0) == 0
    command(jobs, name, "ResumeJob")
    assert until(lambda: jobs.event(name, "CommandIgnored"))
    assert "ResumeJob changes nothing of a job that is succeeded" in jobs.event(name, "CommandIgnored")
    jobs.delete(name)


REFUSED: dict[str, tuple[Manifest, str]] = {
    "more together than there are": (
        volcano("bad", "", minAvailable=9), "spec.minAvailable: is 9, and its tasks have 4 pods",
    ),
    "an action of nobody": (
        volcano("bad", "", policies=[{"event": "PodFailed", "action": "Dance"}]), "policies[0].action",
    ),
    "a task that waits for none that is there": (
        volcano("bad", "", **of(task("w", 1, "", dependsOn={"name": ["gone"]}))), "there is no task of that name",
    ),
    "a circle": (
        volcano("bad", "", **of(
            task("a", 1, "", dependsOn={"name": ["b"]}), task("b", 1, "", dependsOn={"name": ["a"]}))),
        "makes a circle",
    ),
    "an empty template": (
        volcano("bad", "", **of({"name": "w", "replicas": 1, "template": {"spec": {"containers": []}}})), "containers",
    ),
    "less than no pods": (volcano("bad", "", **of(task("w", -1, ""))), "replicas"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be(jobs: Jobs, case: str) -> None:
    """The definition refuses it, or the job's status says why in one sentence, and no pod is made."""
    manifest, words = REFUSED[case]
    done = jobs.cluster.apply(json.dumps(manifest), check=False)
    if done.returncode:
        assert words in done.stderr
        return
    told = lambda: json.dumps(jobs.status("jobs.batch.volcano.sh/bad").get("state", {}))  # noqa: E731
    assert until(lambda: words in told()), told()
    assert jobs.pods("bad") == {}
    jobs.delete("jobs.batch.volcano.sh/bad")


def test_a_task_is_a_pod_template_and_no_more(jobs: Jobs) -> None:
    """The pods say which job, task and version they are of, as Volcano's do."""
    name = jobs.submit(volcano("labelled", SLEEPS, tasks=[{"name": "w", "replicas": 1, "template": template(SLEEPS)}],
                               minAvailable=1))  # fmt: skip
    jobs.reaches(name, "Running")
    metadata = jobs.pods("labelled")["labelled-w-0"]["metadata"]
    told = {key: metadata["annotations"].get(f"volcano.sh/{key}") for key in ("task-spec", "task-index", "job-version")}
    assert told == {"task-spec": "w", "task-index": "0", "job-version": "0"}
    assert metadata["labels"]["volcano.sh/job-name"] == "labelled"
    group = metadata["annotations"]["scheduling.k8s.io/group-name"]
    found = json.loads(jobs.cluster.kubectl("get", "podgroups.scheduling.volcano.sh", group, "-o", "json"))
    assert (found["spec"]["minMember"], found["spec"]["queue"]) == (1, "default")
    jobs.delete(name)

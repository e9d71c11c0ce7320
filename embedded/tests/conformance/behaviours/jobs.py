"""Jobs and CronJobs; the list itself plays the kubelet."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CRON_JOBS, JOBS, PODS, Object, cron_job, job


def _pods(t: Case, count: int, name: str = "j") -> list[Object]:
    """The job's live pods once there are so many, by name."""

    def found() -> list[Object]:
        return t.raw.list(PODS, t.ns, f"batch.kubernetes.io/job-name={name}")

    t.eventually(lambda: len(found()) == count, f"{count} pods of {name}")
    return sorted(found(), key=lambda pod: str(pod["metadata"]["name"]))


def _finish(t: Case, pod: Object, phase: str = "Succeeded", code: int = 0) -> None:
    """As a kubelet reports the end of a pod."""
    ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}
    status = {
        "name": "main",
        "image": "a",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }
    t.change(PODS, pod["metadata"]["name"], {"status": {"phase": phase, "containerStatuses": [status]}}, "status")


def _condition(t: Case, kind: str, name: str = "j") -> Object:
    """The job's condition of this type once it is true."""

    def found() -> Object | None:
        conditions = t.now(JOBS, name).get("status", {}).get("conditions", [])
        return next((item for item in conditions if item["type"] == kind and item["status"] == "True"), None)

    condition: Object = t.eventually(found, f"{kind} of {name}")
    return condition


@behaviour(pages.JOB, fast=Via.ALL)
def a_job_has_its_defaults_and_selects_its_pods(t: Case) -> None:
    found = t.create(JOBS, job("j", suspend=True))
    expected = {"parallelism": 1, "completions": 1, "backoffLimit": 6, "completionMode": "NonIndexed"}
    assert {key: found["spec"][key] for key in expected} == expected
    uid = found["metadata"]["uid"]
    assert found["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    labels = found["spec"]["template"]["metadata"]["labels"]
    assert (labels["batch.kubernetes.io/job-name"], labels["job-name"], labels["controller-uid"]) == ("j", "j", uid)


@behaviour(pages.JOB)
def the_pods_of_a_job_may_not_always_restart(t: Case) -> None:
    with t.refused("Invalid", "spec.template.spec.restartPolicy"):
        t.create(JOBS, job("j", template={"spec": r.pod_spec(restartPolicy="Always")}))


@behaviour(pages.JOB)
def the_template_of_a_job_stays(t: Case) -> None:
    t.given(JOBS, job("j"))
    with t.refused("Invalid", "spec.template", "field is immutable"):
        t.patch(JOBS, "j", "merge", {"spec": {"template": {"spec": {"nodeName": "elsewhere"}}}})


@behaviour(pages.JOB, Via.CODE)
def the_numbers_of_a_job_are_not_negative(t: Case) -> None:
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"):
        with t.refused("Invalid", f"spec.{field}"):
            t.create(JOBS, job("j", **{field: -1}))


@behaviour(pages.JOB, needs="controllers")
def a_job_makes_its_pod_and_owns_it(t: Case) -> None:
    created = t.create(JOBS, job("j"))
    meta = _pods(t, 1)[0]["metadata"]
    assert meta["name"].startswith("j-") and meta["labels"]["job-name"] == "j"
    owner = meta["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "j", created["metadata"]["uid"])
    assert owner["controller"] is True and owner["blockOwnerDeletion"] is True


@behaviour(pages.JOB, needs="controllers")
def a_job_is_complete_when_its_pod_has_succeeded(t: Case) -> None:
    t.create(JOBS, job("j"))
    _finish(t, _pods(t, 1)[0])
    _condition(t, "Complete")
    status = t.get(JOBS, "j")["status"]
    assert status["succeeded"] == 1 and status["completionTime"] and status["startTime"]


@behaviour(pages.JOB + "#controlling-parallelism", Via.CODE, needs="controllers")
def a_job_runs_so_many_pods_at_once_until_enough_succeeded(t: Case) -> None:
    t.create(JOBS, job("j", completions=3, parallelism=2))
    for pod in _pods(t, 2):
        _finish(t, pod)
    last = [pod for pod in _pods(t, 3) if pod["status"]["phase"] == "Pending"]
    assert len(last) == 1
    _finish(t, last[0])
    _condition(t, "Complete")
    assert t.now(JOBS, "j")["status"]["succeeded"] == 3


@behaviour(pages.JOB + "#completion-mode", Via.CODE, needs="controllers")
def an_indexed_job_numbers_its_pods(t: Case) -> None:
    t.create(JOBS, job("j", completions=2, parallelism=2, completionMode="Indexed"))
    pods = _pods(t, 2)
    indexes = [pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for pod in pods]
    assert indexes == ["0", "1"]
    assert [pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in pods] == indexes
    assert [pod["spec"]["hostname"] for pod in pods] == ["j-0", "j-1"]
    environment = {item["name"] for item in pods[0]["spec"]["containers"][0]["env"]}
    assert "JOB_COMPLETION_INDEX" in environment
    for pod in pods:
        _finish(t, pod)
    _condition(t, "Complete")
    assert t.now(JOBS, "j")["status"]["completedIndexes"] == "0,1"


@behaviour(pages.JOB, Via.CODE)
def an_indexed_job_needs_completions(t: Case) -> None:
    with t.refused("Invalid", "spec.completions"):
        t.create(JOBS, job("j", completionMode="Indexed", parallelism=2))


@behaviour(pages.JOB + "#pod-backoff-failure-policy", Via.CODE, needs="controllers")
def a_job_fails_when_its_retries_are_used_up(t: Case) -> None:
    t.create(JOBS, job("j", backoffLimit=0))
    _finish(t, _pods(t, 1)[0], "Failed", 1)
    found = _condition(t, "Failed")
    assert found["reason"] == "BackoffLimitExceeded"
    assert found["message"] == "Job has reached the specified backoff limit"
    assert t.now(JOBS, "j")["status"]["failed"] == 1


@behaviour(pages.JOB + "#pod-failure-policy", Via.CODE, needs="controllers")
def a_failure_policy_may_fail_the_job_by_exit_code(t: Case) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    t.create(JOBS, job("j", podFailurePolicy={"rules": [rule]}))
    _finish(t, _pods(t, 1)[0], "Failed", 42)
    found = _condition(t, "Failed")
    assert found["reason"] == "PodFailurePolicy" and "exit code 42" in found["message"]


@behaviour(pages.JOB + "#pod-failure-policy", Via.CODE, needs="controllers")
def a_failure_policy_may_ignore_disruptions(t: Case) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    t.create(JOBS, job("j", backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    pod = _pods(t, 1)[0]
    disrupted = {"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    t.change(PODS, pod["metadata"]["name"], {"status": disrupted}, "status")

    def replaced() -> bool:
        phases = [item["status"]["phase"] for item in t.raw.list(PODS, t.ns, "job-name=j")]
        return "Pending" in phases

    t.eventually(replaced, "another pod")
    conditions = t.now(JOBS, "j")["status"].get("conditions", [])
    assert "Failed" not in [item["type"] for item in conditions]


@behaviour(pages.JOB + "#pod-failure-policy", Via.CODE)
def a_failure_policy_is_for_pods_that_never_restart(t: Case) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}
    template = {"spec": r.pod_spec(restartPolicy="OnFailure")}
    with t.refused("Invalid", "restartPolicy"):
        t.create(JOBS, job("j", template=template, podFailurePolicy={"rules": [rule]}))


@behaviour(pages.JOB + "#suspending-a-job", needs="controllers")
def a_suspended_job_runs_nothing_until_resumed(t: Case) -> None:
    t.create(JOBS, job("j", suspend=True))
    assert _condition(t, "Suspended")["reason"] == "JobSuspended"
    assert t.raw.list(PODS, t.ns, "job-name=j") == []
    t.patch(JOBS, "j", "merge", {"spec": {"suspend": False}})
    _pods(t, 1)


@behaviour(pages.JOB + "#suspending-a-job", Via.CODE, needs="controllers")
def suspending_a_job_removes_its_pods(t: Case) -> None:
    t.given(JOBS, job("j"))
    _pods(t, 1)
    t.patch(JOBS, "j", "merge", {"spec": {"suspend": True}})
    _pods(t, 0)
    _condition(t, "Suspended")


@behaviour(pages.JOB + "#job-termination-and-cleanup", Via.CODE, Via.NONE, needs="controllers")
def a_job_past_its_deadline_fails(t: Case) -> None:
    t.create(JOBS, job("j", activeDeadlineSeconds=1))
    found = _condition(t, "Failed")
    assert found["reason"] == "DeadlineExceeded"
    _pods(t, 0)


@behaviour(pages.JOB_TTL, Via.CODE, Via.NONE, needs="controllers")
def a_finished_job_is_removed_after_its_time(t: Case) -> None:
    t.create(JOBS, job("j", ttlSecondsAfterFinished=1))
    _finish(t, _pods(t, 1)[0])
    t.gone(JOBS, "j")
    _pods(t, 0)


@behaviour(pages.JOB, needs="controllers")
def the_pods_of_a_deleted_job_go_along(t: Case) -> None:
    t.given(JOBS, job("j"))
    _pods(t, 1)
    t.delete(JOBS, "j", propagation="Background")
    t.gone(JOBS, "j")
    _pods(t, 0)


@behaviour(pages.JOB, needs="controllers")
def the_pods_of_a_job_may_be_orphaned(t: Case) -> None:
    t.given(JOBS, job("j"))
    _pods(t, 1)
    t.delete(JOBS, "j", propagation="Orphan")
    t.gone(JOBS, "j")
    assert "ownerReferences" not in _pods(t, 1)[0]["metadata"]


@behaviour(pages.JOB, Via.CODE, needs="controllers")
def a_job_tells_of_its_pods_in_events(t: Case) -> None:
    t.create(JOBS, job("j"))
    name = _pods(t, 1)[0]["metadata"]["name"]

    def told() -> list[Object]:
        return t.raw.list(r.EVENTS, t.ns, fields="involvedObject.name=j,reason=SuccessfulCreate")

    assert t.eventually(told, "an event")[0]["message"] == f"Created pod: {name}"


# -- CronJobs --------------------------------------------------------------------------------------------------


@behaviour(pages.CRON_JOB)
def a_cron_job_has_its_defaults(t: Case) -> None:
    spec = t.create(CRON_JOBS, cron_job("c"))["spec"]
    assert (spec["concurrencyPolicy"], spec["successfulJobsHistoryLimit"], spec["failedJobsHistoryLimit"]) == (
        "Allow",
        3,
        1,
    )


@behaviour(pages.CRON_JOB + "#schedule-syntax")
def a_schedule_that_is_none_is_refused(t: Case) -> None:
    for schedule in ("every day", "61 * * * *", "* * * *"):
        with t.refused("Invalid", "spec.schedule"):
            t.create(CRON_JOBS, cron_job("c", schedule=schedule))


@behaviour(pages.CRON_JOB + "#schedule-syntax", Via.CODE)
def a_schedule_may_be_a_macro(t: Case) -> None:
    for number, schedule in enumerate(
        ("@hourly", "@daily", "@weekly", "@monthly", "@yearly", "*/5 0-6 1,15 JAN MON-FRI")
    ):
        t.create(CRON_JOBS, cron_job(f"c{number}", schedule=schedule))


@behaviour(pages.CRON_JOB + "#time-zones", Via.CODE)
def a_time_zone_has_a_field_of_its_own(t: Case) -> None:
    t.create(CRON_JOBS, cron_job("ok", timeZone="Europe/Berlin"))
    with t.refused("Invalid", "spec.schedule"):
        t.create(CRON_JOBS, cron_job("c", schedule="TZ=UTC 0 0 * * *"))
    with t.refused("Invalid", "spec.timeZone"):
        t.create(CRON_JOBS, cron_job("c", timeZone="Europe/Nowhere"))


@behaviour(pages.CRON_JOB, Via.CODE)
def a_concurrency_policy_is_one_of_three(t: Case) -> None:
    with t.refused("Invalid", "spec.concurrencyPolicy"):
        t.create(CRON_JOBS, cron_job("c", concurrencyPolicy="Perhaps"))


@behaviour(pages.CRON_JOB, Via.CODE)
def a_cron_job_name_leaves_room_for_its_jobs(t: Case) -> None:
    t.create(CRON_JOBS, cron_job("a" * 52))
    with t.refused("Invalid", "metadata.name"):
        t.create(CRON_JOBS, cron_job("a" * 53))


@behaviour(pages.CRON_JOB, Via.RAW, Via.NONE, needs="controllers")
def a_cron_job_makes_a_job_each_time(t: Case) -> None:
    # Due since its creation's minute, so that no more than one minute passes.
    t.given(CRON_JOBS, cron_job("c", schedule="* * * * *", suspend=False))
    t.defer(lambda: t.raw.delete(CRON_JOBS, t.ns, "c"))

    def made() -> Any:
        return t.raw.list(JOBS, t.ns)

    for _ in range(3):  # one wait is shorter than a minute
        try:
            job_made = t.eventually(made, "a job of the CronJob")[0]
            break
        except AssertionError:
            continue
    else:
        raise AssertionError("no job of the CronJob within a minute and a half")
    assert job_made["metadata"]["name"].startswith("c-")
    assert job_made["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert job_made["metadata"]["ownerReferences"][0]["kind"] == "CronJob"
    assert t.now(CRON_JOBS, "c")["status"]["lastScheduleTime"]

"""CronJobs: the controller through the API, with time that moves as the tests say. The clock starts at 14:13:20 UTC."""

import pytest

CRONS = "/apis/batch/v1/namespaces/default/cronjobs"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
NOON_MINUTE = 1_790_000_000 // 60


def cron(name="c", schedule="* * * * *", **spec):
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
    template = {"metadata": {"labels": {"mine": "yes"}}, "spec": {"template": {"spec": pod_spec}}}
    return {"metadata": {"name": name}, "spec": {"schedule": schedule, "jobTemplate": template} | spec}


def start(api, body=None):
    api.post(CRONS, body or cron())
    api.settle()


def after(api, seconds):
    api.clock.advance(seconds)
    api.settle()


def jobs(api):
    return [found["metadata"]["name"] for found in api.get(JOBS)["items"]]


def status(api, name="c"):
    return api.get(f"{CRONS}/{name}").get("status", {})


def active(api):
    return [reference["name"] for reference in status(api).get("active", ())]


def finish(api, name, phase="Succeeded"):
    for pod in api.get("/api/v1/namespaces/default/pods")["items"]:
        if pod["metadata"]["labels"]["job-name"] == name:
            api.set_pod_status(pod["metadata"]["name"], {"phase": phase})
    api.settle()


def events(api):
    found = api.get("/api/v1/namespaces/default/events")["items"]
    return [(e["reason"], e["message"]) for e in found if e["involvedObject"]["kind"] == "CronJob"]


def minute(number):
    return f"c-{NOON_MINUTE + number}"


def test_a_job_is_made_each_time(api):
    """Named by the minute, owned, labelled as the template says, and told when it was due."""
    start(api)
    assert jobs(api) == []
    after(api, 40)
    assert jobs(api) == [minute(1)] and active(api) == [minute(1)]
    made = api.get(f"{JOBS}/{minute(1)}")
    assert made["metadata"]["labels"]["mine"] == "yes"
    key = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert made["metadata"]["annotations"][key] == status(api)["lastScheduleTime"] == "2026-09-21T14:14:00Z"
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("CronJob", True)
    after(api, 60)
    assert jobs(api) == [minute(1), minute(2)]
    assert ("SuccessfulCreate", f"Created job {minute(1)}") in events(api)


def test_a_finished_job_leaves_the_list(api):
    """SawCompletedJob; a success moves lastSuccessfulTime."""
    start(api)
    after(api, 40)
    finish(api, minute(1))
    assert active(api) == [] and status(api)["lastSuccessfulTime"] == "2026-09-21T14:14:00Z"
    assert ("SawCompletedJob", f"Saw completed job: {minute(1)}, condition: Complete") in events(api)


@pytest.mark.parametrize(
    ("policy", "left", "told"),
    [
        ("Allow", [1, 2], None),
        ("Forbid", [1], "JobAlreadyActive"),
        ("Replace", [2], "SuccessfulDelete"),
    ],
)
def test_what_happens_when_the_last_one_still_runs(api, policy, left, told):
    """concurrencyPolicy."""
    start(api, cron(concurrencyPolicy=policy))
    after(api, 40)
    after(api, 60)
    assert active(api) == jobs(api) == [minute(number) for number in left]
    assert told is None or told in {reason for reason, _ in events(api)}


def test_a_forbidden_time_is_made_up_for(api):
    """As soon as the running job has ended."""
    start(api, cron(concurrencyPolicy="Forbid"))
    after(api, 40)
    after(api, 90)
    finish(api, minute(1))
    assert active(api) == [minute(2)]


def test_history_is_limited(api):
    """The youngest of each kind stay."""
    start(api, cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=0))
    after(api, 40)
    for number in range(1, 5):
        finish(api, minute(number))
        after(api, 60)
    assert jobs(api) == [minute(3), minute(4), minute(5)]
    body = api.get(f"{JOBS}/{minute(5)}")
    api.patch(f"{JOBS}/{minute(5)}", {"spec": {"activeDeadlineSeconds": 1}})
    assert body["spec"].get("activeDeadlineSeconds") is None
    api.settle()
    after(api, 2)
    assert minute(5) not in jobs(api)


def test_a_suspended_cron_job_rests(api):
    """And goes on with the newest time it missed."""
    start(api, cron(suspend=True))
    after(api, 200)
    assert jobs(api) == []
    api.patch(f"{CRONS}/c", {"spec": {"suspend": False}})
    api.settle()
    assert jobs(api) == [minute(3)]


def test_a_start_that_comes_too_late_is_missed(api):
    """startingDeadlineSeconds."""
    start(api, cron(schedule="14 14 * * *", suspend=True, startingDeadlineSeconds=30))
    after(api, 200)
    api.patch(f"{CRONS}/c", {"spec": {"suspend": False}})
    api.settle()
    assert jobs(api) == []
    after(api, 86400 - 160)
    assert len(jobs(api)) == 1


def test_more_than_a_hundred_missed_times_are_told(api):
    """The newest of them is served all the same."""
    start(api, cron(suspend=True))
    after(api, 60 * 150)
    api.patch(f"{CRONS}/c", {"spec": {"suspend": False}})
    api.settle()
    assert jobs(api) == [minute(150)]
    assert "TooManyMissedTimes" in {reason for reason, _ in events(api)}


def test_the_zone_decides(api):
    """14:14 UTC is 16:14 in Berlin; the annotation speaks its time."""
    start(api, cron(schedule="14 16 * * *", timeZone="Europe/Berlin"))
    after(api, 40)
    (name,) = jobs(api)
    annotations = api.get(f"{JOBS}/{name}")["metadata"]["annotations"]
    assert annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2026-09-21T16:14:00+02:00"


def test_a_job_made_by_hand_is_noticed(api):
    """`kubectl create job --from` makes the CronJob its owner; it does not count as active."""
    start(api, cron(suspend=True))
    uid = api.get(f"{CRONS}/c")["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "uid": uid, "controller": True}
    made = cron()["spec"]["jobTemplate"]
    api.post(JOBS, {"metadata": {"name": "by-hand", "ownerReferences": [owner]}, "spec": made["spec"]})
    api.settle()
    assert active(api) == []
    message = "Saw a job that the controller did not create or forgot: by-hand"
    assert ("UnexpectedJob", message) in events(api)


def test_jobs_go_with_their_cron_job(api):
    """Owner references do it."""
    start(api)
    after(api, 40)
    api.call("DELETE", f"{CRONS}/c", {"propagationPolicy": "Background"})
    api.settle()
    assert jobs(api) == [] and api.get("/api/v1/namespaces/default/pods")["items"] == []


def test_a_job_that_went_missing_is_told(api):
    """And not waited for."""
    start(api, cron(concurrencyPolicy="Forbid"))
    after(api, 40)
    api.call("DELETE", f"{JOBS}/{minute(1)}", {"propagationPolicy": "Background"})
    api.settle()
    assert active(api) == [] and ("MissingJob", f"Active job went missing: {minute(1)}") in events(api)


def test_a_job_that_is_refused_is_tried_again(api):
    """The template's fault, in the API's own words."""
    body = cron()
    body["spec"]["jobTemplate"]["metadata"]["labels"] = {"mine": "not a label!"}
    start(api, body)
    after(api, 40)
    assert jobs(api) == [] and events(api)[0][0] == "FailedCreate"
    assert "a valid label must be" in events(api)[0][1]


def test_defaults(api):
    """As the API reference states them; the job template stays as it is written."""
    spec = api.post(CRONS, cron())["spec"]
    names = ("concurrencyPolicy", "suspend", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    assert [spec[name] for name in names] == ["Allow", False, 3, 1]
    assert "backoffLimit" not in spec["jobTemplate"]["spec"]


WRONG = {
    "schedule": ({"schedule": "often"}, "spec.schedule", "expected exactly 5 fields"),
    "no schedule": ({"schedule": ""}, "spec.schedule", "Required value"),
    "TZ": ({"schedule": "TZ=UTC * * * * *"}, "spec.schedule", "cannot use TZ or CRON_TZ in schedule"),
    "zone": ({"timeZone": "Mars/Base"}, "spec.timeZone", "unknown time zone Mars/Base"),
    "no zone": ({"timeZone": ""}, "spec.timeZone", "timeZone must be nil or non-empty string"),
    "local zone": ({"timeZone": "Local"}, "spec.timeZone", "must be an explicit time zone"),
    "policy": ({"concurrencyPolicy": "Never"}, "spec.concurrencyPolicy", '"Allow", "Forbid", "Replace"'),
    "history": ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit", "greater than or equal to 0"),
    "deadline": ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds", "greater than or equal to 0"),
    "name": ({"name": "a" * 53}, "metadata.name", "must be no more than 52 characters"),
}


@pytest.mark.parametrize(("change", "field", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_cron_job_is_refused_with_the_field(api, change, field, words):
    """422 with one cause."""
    code, answer = api.call("POST", CRONS, cron(**change))
    assert code == 422 and [cause["field"] for cause in answer["details"]["causes"]] == [field]
    assert words in answer["message"]


def test_a_wrong_job_template_is_refused(api):
    """With the path down to the pod."""
    body = cron()
    body["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    code, answer = api.call("POST", CRONS, body)
    field = "spec.jobTemplate.spec.template.spec.restartPolicy"
    assert code == 422 and [cause["field"] for cause in answer["details"]["causes"]] == [field]

"""Jobs: the controller through the API, with pods that finish as the tests say."""

import pytest

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PODS = "/api/v1/namespaces/default/pods"


def job(name="j", restart_policy="Never", labels=None, **spec):
    pod_spec = {"restartPolicy": restart_policy, "containers": [{"name": "c", "image": "busybox"}]}
    template = {"metadata": {"labels": labels or {}}, "spec": pod_spec}
    return {"metadata": {"name": name}, "spec": {"template": template} | spec}


def pods(api):
    return api.get(PODS)["items"]


def active(api):
    return [p["metadata"]["name"] for p in pods(api) if p["status"]["phase"] in ("Pending", "Running")]


def finish(api, phase="Succeeded", count=None):
    for name in active(api)[:count]:
        api.set_pod_status(name, {"phase": phase})
    api.settle()


def conditions(api, name="j"):
    found = api.get(f"{JOBS}/{name}")["status"].get("conditions", [])
    return {item["type"]: item["reason"] for item in found if item["status"] == "True"}


def start(api, body):
    api.post(JOBS, body)
    api.settle()
    return api.get(f"{JOBS}/{body['metadata']['name']}")


def test_a_job_makes_pods_that_belong_to_it(api):
    """Labels new and old, a controlling owner reference, names from the job's."""
    found = start(api, job(labels={"mine": "yes"}))
    (made,) = pods(api)
    uid = found["metadata"]["uid"]
    assert made["metadata"]["name"].startswith("j-")
    assert made["metadata"]["labels"] == {
        "mine": "yes",
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": "j",
        "controller-uid": uid,
        "job-name": "j",
    }
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", uid, True)
    assert found["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    assert found["status"]["active"] == 1 and found["status"]["startTime"]


def test_a_job_runs_its_completions_in_parallel_and_then_is_complete(api):
    """Never more pods at once than parallelism, never more in all than completions."""
    start(api, job(completions=3, parallelism=2))
    assert len(active(api)) == 2
    finish(api)
    assert len(active(api)) == 1
    finish(api)
    status = api.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status.get("active")) == (3, None)
    assert conditions(api) == {"SuccessCriteriaMet": "CompletionsReached", "Complete": "CompletionsReached"}
    assert status["completionTime"] and len(pods(api)) == 3


def test_a_work_queue_is_done_when_one_succeeded_and_the_rest_ended(api):
    """Parallelism without completions."""
    start(api, job(parallelism=2))
    finish(api, count=1)
    assert conditions(api) == {} and len(active(api)) == 1
    finish(api)
    assert "Complete" in conditions(api)


def test_failed_pods_are_replaced_with_growing_pauses_until_the_limit(api):
    """backoffLimit counts the failures; the pause doubles."""
    start(api, job(backoffLimit=1))
    ended = {"state": {"terminated": {"exitCode": 1, "finishedAt": "2026-09-21T14:13:20Z"}}, "name": "c"}
    api.set_pod_status(active(api)[0], {"phase": "Failed", "containerStatuses": [ended]})
    api.settle()
    assert active(api) == [] and conditions(api) == {}
    api.clock.advance(11)
    api.settle()
    assert len(active(api)) == 1
    finish(api, "Failed")
    assert conditions(api) == {"Failed": "BackoffLimitExceeded"}
    assert api.get(f"{JOBS}/j")["status"]["failed"] == 2


def test_restarts_in_place_count_towards_the_limit(api):
    """With restartPolicy OnFailure the pod stays and its restarts count."""
    start(api, job(restart_policy="OnFailure", backoffLimit=2))
    statuses = [{"name": "c", "restartCount": 2}]
    api.set_pod_status(active(api)[0], {"phase": "Running", "containerStatuses": statuses})
    api.settle()
    assert conditions(api) == {"Failed": "BackoffLimitExceeded"}
    assert active(api) == []


def test_a_deadline_fails_the_job_and_removes_its_pods(api):
    """activeDeadlineSeconds counts from the start."""
    start(api, job(activeDeadlineSeconds=60))
    api.clock.advance(59)
    api.settle()
    assert conditions(api) == {}
    api.clock.advance(1)
    api.settle()
    assert conditions(api) == {"Failed": "DeadlineExceeded"}
    assert pods(api) == []


def test_a_suspended_job_has_no_pods_and_resumes(api):
    """Suspending is not failing, however often it happens."""
    start(api, job(suspend=True, backoffLimit=0))
    assert pods(api) == [] and conditions(api) == {"Suspended": "JobSuspended"}
    api.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    api.settle()
    assert len(active(api)) == 1 and conditions(api) == {}
    api.patch(f"{JOBS}/j", {"spec": {"suspend": True}})
    api.settle()
    assert pods(api) == [] and conditions(api) == {"Suspended": "JobSuspended"}
    api.patch(f"{JOBS}/j", {"spec": {"suspend": False}})
    api.settle()
    assert len(active(api)) == 1


def test_pods_let_go_are_forgotten_even_if_their_job_goes_first(api):
    """Nothing stays in memory of a job that is over."""
    start(api, job(activeDeadlineSeconds=60))
    held = active(api)[0]
    api.patch(f"{PODS}/{held}", {"metadata": {"finalizers": ["example.com/hold"]}})
    api.clock.advance(60)
    api.settle()
    api.call("DELETE", f"{JOBS}/j", {"propagationPolicy": "Background"})
    api.settle()
    api.patch(f"{PODS}/{held}", {"metadata": {"finalizers": None}})
    api.settle()
    assert pods(api) == []
    assert api.controllers._jobs._dismissed == set()


def test_parallelism_may_change(api):
    """Pods come and go with it, and the ones let go are no failures."""
    start(api, job(completions=5, parallelism=1, backoffLimit=0))
    api.patch(f"{JOBS}/j", {"spec": {"parallelism": 4}})
    api.settle()
    assert len(active(api)) == 4
    api.patch(f"{JOBS}/j", {"spec": {"parallelism": 2}})
    api.settle()
    assert len(active(api)) == 2 and conditions(api) == {}


def test_finished_pods_that_were_deleted_still_count(api):
    """A success is not repeated because somebody cleaned up."""
    start(api, job(completions=2, parallelism=1))
    finish(api)
    done = next(p["metadata"]["name"] for p in pods(api) if p["status"]["phase"] == "Succeeded")
    api.call("DELETE", f"{PODS}/{done}")
    api.settle()
    assert api.get(f"{JOBS}/j")["status"]["succeeded"] == 1
    finish(api)
    assert "Complete" in conditions(api)


def test_a_pod_deleted_by_others_is_a_failure_and_is_replaced(api):
    """An evicted pod costs one try."""
    start(api, job(backoffLimit=3))
    api.call("DELETE", f"{PODS}/{active(api)[0]}")
    api.settle()
    assert api.get(f"{JOBS}/j")["status"]["failed"] == 1
    api.clock.advance(11)
    api.settle()
    assert len(active(api)) == 1


def test_an_indexed_job_runs_each_index_once(api):
    """Every index gets its own pod, its annotation and its environment variable."""
    start(api, job(completions=3, parallelism=3, completionMode="Indexed"))
    key = "batch.kubernetes.io/job-completion-index"
    assert sorted(p["metadata"]["annotations"][key] for p in pods(api)) == ["0", "1", "2"]
    for made in pods(api):
        env = {item["name"]: item["value"] for item in made["spec"]["containers"][0]["env"]}
        assert env["JOB_COMPLETION_INDEX"] == made["metadata"]["annotations"][key]
    finish(api)
    status = api.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")


def test_a_finished_job_is_deleted_after_its_time_to_live(api):
    """ttlSecondsAfterFinished, with its pods."""
    start(api, job(ttlSecondsAfterFinished=100))
    finish(api)
    api.clock.advance(99)
    api.settle()
    assert api.get(f"{JOBS}/j")
    api.clock.advance(1)
    api.settle()
    assert api.call("GET", f"{JOBS}/j")[0] == 404 and pods(api) == []


def test_pods_the_api_refuses_are_reported_and_tried_again(api):
    """A missing priority class is an event, not a crash, and is not fatal."""
    body = job()
    body["spec"]["template"]["spec"]["priorityClassName"] = "later"
    start(api, body)
    events = api.get("/api/v1/namespaces/default/events")["items"]
    assert [(e["reason"], e["type"]) for e in events] == [("FailedCreate", "Warning")]
    assert "no PriorityClass with name later" in events[0]["message"]
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "later"}, "value": 1})
    api.clock.advance(10)
    api.settle()
    assert len(active(api)) == 1


def test_a_job_of_another_group_is_not_ours(api):
    """A pod of a Volcano Job of the same name does not wake or feed this controller."""
    start(api, job())
    other = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "v", "controller": True}
    meta = {"name": "foreign", "ownerReferences": [other]}
    api.post(PODS, {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    api.set_pod_status("foreign", {"phase": "Succeeded"})
    api.settle()
    assert conditions(api) == {} and api.get(f"{PODS}/foreign")


@pytest.mark.parametrize(
    "change", [{"completions": 5}, {"selector": {"matchLabels": {"a": "b"}}}, {"completionMode": "Indexed"}]
)
def test_what_identifies_a_job_is_settled(api, change):
    """422 for fields that cannot change."""
    start(api, job(completions=2))
    assert api.patch(f"{JOBS}/j", {"spec": change})[0] == 422

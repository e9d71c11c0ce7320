"""Jobs: the controller through the API, with pods that finish as the tests say."""

import pytest

from embedded.apiserver.admission.admitted_writes import AdmittedWrites, NoAdmissionHooks
from embedded.apiserver.apimachinery.objects import rfc3339
from embedded.apiserver.apimachinery.resource_types import PODS as PODS_TYPE
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.controller_manager import Controllers

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
    assert conditions(api) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert api.get(f"{JOBS}/j")["status"]["failed"] == 2


def test_restarts_in_place_count_towards_the_limit(api):
    """With restartPolicy OnFailure the pod stays and its restarts count."""
    start(api, job(restart_policy="OnFailure", backoffLimit=2))
    statuses = [{"name": "c", "restartCount": 2}]
    api.set_pod_status(active(api)[0], {"phase": "Running", "containerStatuses": statuses})
    api.settle()
    assert conditions(api) == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    assert active(api) == []


def test_a_deadline_fails_the_job_and_removes_its_pods(api):
    """activeDeadlineSeconds counts from the start."""
    start(api, job(activeDeadlineSeconds=60))
    api.clock.advance(59)
    api.settle()
    assert conditions(api) == {}
    api.clock.advance(1)
    api.settle()
    assert conditions(api) == {"FailureTarget": "DeadlineExceeded", "Failed": "DeadlineExceeded"}
    assert pods(api) == [] and api.get(f"{JOBS}/j")["status"]["failed"] == 1


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
    assert (api.controllers._jobs._tallies, api.controllers._jobs._pods) == ({}, {})


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
        index = made["metadata"]["annotations"][key]
        assert made["metadata"]["labels"][key] == index and made["spec"]["hostname"] == f"j-{index}"
        assert made["metadata"]["name"].startswith(f"j-{index}-")
        (variable,) = made["spec"]["containers"][0]["env"]
        assert variable["name"] == "JOB_COMPLETION_INDEX"
        assert variable["valueFrom"]["fieldRef"]["fieldPath"] == f"metadata.labels['{key}']"
    finish(api)
    status = api.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (3, "0-2")


@pytest.mark.parametrize("index", ["x", "-1", "9" * 5000])
def test_an_index_that_is_no_number_is_none(api, index):
    """Whoever edits the annotation loses the pod to the job, which makes another."""
    start(api, job(completions=1, parallelism=1, completionMode="Indexed"))
    (edited,) = pods(api)
    key = "batch.kubernetes.io/job-completion-index"
    annotated = {"metadata": {"annotations": {key: index}}}
    assert api.patch(f"{PODS}/{edited['metadata']['name']}", annotated)[0] == 200
    api.settle()
    assert [
        p["metadata"]["annotations"][key] for p in pods(api) if p["metadata"]["uid"] != edited["metadata"]["uid"]
    ] == ["0"]


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


def exit_with(api, code, phase="Failed", count=None):
    for name in active(api)[:count]:
        ended = {"name": "c", "state": {"terminated": {"exitCode": code, "finishedAt": rfc3339(api.clock())}}}
        api.set_pod_status(name, {"phase": phase, "containerStatuses": [ended]})
    api.settle()


def events(api, kind="Job"):
    found = api.get("/api/v1/namespaces/default/events")["items"]
    return [(e["reason"], e["message"]) for e in found if e["involvedObject"]["kind"] == kind]


def bound_job(**spec):
    """A job whose pods a node runs, so that their deletion takes time."""
    body = job(**spec)
    body["spec"]["template"]["spec"]["nodeName"] = "n"
    return body


def test_a_failing_job_waits_for_its_pods_to_end(api):
    """FailureTarget at once, Failed when the last pod is gone; each pod is a failure by then."""
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    start(api, bound_job(parallelism=2, completions=2, activeDeadlineSeconds=10))
    api.clock.advance(10)
    api.settle()
    status = api.get(f"{JOBS}/j")["status"]
    assert conditions(api) == {"FailureTarget": "DeadlineExceeded"}
    assert (status["terminating"], status["failed"], status.get("active")) == (2, 2, None)
    for pod in pods(api):
        api.call("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
    api.settle()
    status = api.get(f"{JOBS}/j")["status"]
    assert conditions(api)["Failed"] == "DeadlineExceeded" and status["failed"] == 2
    assert ("DeadlineExceeded", "Job was active longer than specified deadline") in events(api)


@pytest.mark.parametrize(("policy", "replaced"), [("TerminatingOrFailed", True), ("Failed", False)])
def test_a_terminating_pod_is_replaced_at_once_or_when_it_has_ended(api, policy, replaced):
    """podReplacementPolicy."""
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    start(api, bound_job(podReplacementPolicy=policy))
    api.call("DELETE", f"{PODS}/{active(api)[0]}")
    api.settle()
    api.clock.advance(60)
    api.settle()
    assert (len(pods(api)) == 2) is replaced
    status = api.get(f"{JOBS}/j")["status"]
    assert status["terminating"] == 1 and (status.get("failed", 0) == 1) is replaced


def failure_policy(*rules):
    return {"podFailurePolicy": {"rules": list(rules)}, "backoffLimit": 1}


BAD_EXIT = {"operator": "In", "values": [42]}


def test_a_fatal_exit_code_fails_the_job(api):
    """FailJob, with the rule's number and the container's name in the message."""
    rules = [{"action": "Count", "onExitCodes": {"operator": "In", "values": [1]}}]
    start(api, job(**failure_policy(*rules, {"action": "FailJob", "onExitCodes": BAD_EXIT})))
    name = active(api)[0]
    exit_with(api, 42)
    wanted = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 1"
    assert conditions(api)["Failed"] == "PodFailurePolicy"
    assert ("PodFailurePolicy", wanted) in events(api)


def test_a_disrupted_pod_may_cost_no_try(api):
    """Ignore on DisruptionTarget: replaced, never counted."""
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    start(api, job(backoffLimit=0, podFailurePolicy={"rules": [rule]}))
    for _ in range(3):
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        api.set_pod_status(active(api)[0], {"phase": "Failed", "conditions": disrupted})
        api.settle()
    assert len(active(api)) == 1 and conditions(api) == {}
    assert "failed" not in api.get(f"{JOBS}/j")["status"]


@pytest.mark.parametrize(
    ("container", "operator", "code", "fails"),
    [("c", "In", 42, True), ("c", "NotIn", 42, False), ("c", "NotIn", 7, True), (None, "In", 7, False)],
)
def test_exit_codes_are_compared_per_container(api, container, operator, code, fails):
    """containerName narrows, NotIn turns round; a code of nobody's rule is an ordinary failure."""
    codes = {"operator": operator, "values": [42]} | ({"containerName": container} if container else {})
    start(api, job(**failure_policy({"action": "FailJob", "onExitCodes": codes})))
    exit_with(api, code)
    assert ("Failed" in conditions(api)) is fails


INDEXED = {"completions": 3, "parallelism": 3, "completionMode": "Indexed"}


def of_index(api, index):
    key = "batch.kubernetes.io/job-completion-index"
    living = set(active(api))
    found = [p for p in pods(api) if p["metadata"]["labels"][key] == str(index) and p["metadata"]["name"] in living]
    return found[0] if found else None


def end_index(api, index, phase):
    api.set_pod_status(of_index(api, index)["metadata"]["name"], {"phase": phase})
    api.settle()


def test_an_index_fails_for_itself(api):
    """backoffLimitPerIndex: the others go on; in the end the job has failed indexes."""
    start(api, job(backoffLimitPerIndex=1, **INDEXED))
    assert api.get(f"{JOBS}/j")["spec"]["backoffLimit"] == 2**31 - 1
    end_index(api, 1, "Failed")
    assert of_index(api, 1) is None and of_index(api, 0) is not None
    api.clock.advance(10)
    api.settle()
    again = of_index(api, 1)
    assert again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] == "1"
    end_index(api, 1, "Failed")
    api.clock.advance(100)
    api.settle()
    assert of_index(api, 1) is None
    for index in (0, 2):
        end_index(api, index, "Succeeded")
    status = api.get(f"{JOBS}/j")["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert conditions(api)["Failed"] == "FailedIndexes"


def test_too_many_failed_indexes_end_the_job(api):
    """maxFailedIndexes."""
    start(api, job(backoffLimitPerIndex=0, maxFailedIndexes=0, **INDEXED))
    end_index(api, 2, "Failed")
    assert conditions(api)["Failed"] == "MaxFailedIndexesExceeded" and active(api) == []


def test_an_index_may_be_given_up_by_its_exit_code(api):
    """FailIndex: no further try, whatever the limit."""
    rule = {"action": "FailIndex", "onExitCodes": BAD_EXIT}
    start(api, job(backoffLimitPerIndex=5, podFailurePolicy={"rules": [rule]}, **INDEXED))
    name = of_index(api, 0)["metadata"]["name"]
    ended = {"name": "c", "state": {"terminated": {"exitCode": 42}}}
    api.set_pod_status(name, {"phase": "Failed", "containerStatuses": [ended]})
    api.settle()
    api.clock.advance(100)
    api.settle()
    assert of_index(api, 0) is None and api.get(f"{JOBS}/j")["status"]["failedIndexes"] == "0"


@pytest.mark.parametrize(
    ("rule", "enough"),
    [({"succeededIndexes": "0"}, True), ({"succeededIndexes": "1-2"}, False), ({"succeededCount": 1}, True)],
)
def test_a_success_policy_ends_the_job_early(api, rule, enough):
    """Which indexes, or how many; the rest is let go and is no failure."""
    start(api, job(successPolicy={"rules": [rule]}, **INDEXED))
    end_index(api, 0, "Succeeded")
    assert (conditions(api).get("Complete") == "SuccessPolicy") is enough
    assert (active(api) == []) is enough and "failed" not in api.get(f"{JOBS}/j")["status"]


def test_a_success_ends_the_pause(api):
    """The back-off counts failures since the last success only."""
    start(api, job(completions=5, parallelism=2, backoffLimit=6))
    exit_with(api, 1, count=1)
    api.clock.advance(5)
    exit_with(api, 0, "Succeeded")
    assert len(active(api)) == 2


def test_what_is_remembered_of_gone_pods_outlives_the_controllers(api):
    """A server that comes back counts as the status says."""
    start(api, job(completions=3, parallelism=1, backoffLimit=1))
    exit_with(api, 0, "Succeeded")
    api.clock.advance(1)
    exit_with(api, 1)
    for pod in pods(api):
        api.call("DELETE", f"{PODS}/{pod['metadata']['name']}")
    api.settle()
    api.controllers = Controllers(api.resources, api.core.writes)
    api.clock.advance(600)
    api.settle()
    status = api.get(f"{JOBS}/j")["status"]
    assert (status["succeeded"], status["failed"], len(active(api))) == (1, 1, 1)


def test_suspending_and_resuming_is_told(api):
    """Events as upstream."""
    start(api, job())
    for suspend in (True, False):
        api.patch(f"{JOBS}/j", {"spec": {"suspend": suspend}})
        api.settle()
    assert {("Suspended", "Job suspended"), ("Resumed", "Job resumed")} <= set(events(api))


def test_a_job_managed_by_others_is_left_alone(api):
    """spec.managedBy."""
    api.post(JOBS, job(managedBy="example.com/mine"))
    api.settle()
    assert pods(api) == []


def test_refusals_are_retried_with_growing_pauses(api):
    """1 s, 2 s, 4 s."""
    body = job()
    body["spec"]["template"]["spec"]["priorityClassName"] = "later"
    start(api, body)
    tried = []
    for _ in range(8):
        api.clock.advance(1)
        api.settle()
        tried.append(len(events(api)))
    assert tried == [2, 2, 3, 3, 3, 3, 4, 4]


class Refusing(NoAdmissionHooks):
    """A webhook that wants no pods."""

    def concern(self, rtype, namespace, subresource):
        return rtype is PODS_TYPE

    async def validate(self, draft):
        raise StatusError(403, "Forbidden", 'admission webhook "no.example.com" denied the request: no')


def test_webhooks_see_the_pods_of_jobs(api):
    """What they refuse is an event of the job."""
    api.controllers = Controllers(api.resources, AdmittedWrites(api.resources, Refusing()))
    start(api, job())
    assert pods(api) == []
    assert events(api) == [
        ("FailedCreate", 'Error creating: admission webhook "no.example.com" denied the request: no')
    ]


WRONG = {
    "completions": ({"completions": -1}, "spec.completions"),
    "mode": ({"completionMode": "Odd"}, "spec.completionMode"),
    "indexed without number": ({"completionMode": "Indexed", "parallelism": 2}, "spec.completions"),
    "restart policy": ({"restart_policy": "Always"}, "spec.template.spec.restartPolicy"),
    "per index": ({"backoffLimitPerIndex": 1}, "spec.backoffLimitPerIndex"),
    "max failed": ({"maxFailedIndexes": 1, **INDEXED}, "spec.backoffLimitPerIndex"),
    "replacement": ({"podReplacementPolicy": "Never"}, "spec.podReplacementPolicy"),
    "policy restarts": (
        {"restart_policy": "OnFailure", **failure_policy({"action": "FailJob", "onExitCodes": BAD_EXIT})},
        "spec.template.spec.restartPolicy",
    ),
    "no action": (failure_policy({"onExitCodes": BAD_EXIT}), "spec.podFailurePolicy.rules[0].action"),
    "zero": (
        failure_policy({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}),
        "spec.podFailurePolicy.rules[0].onExitCodes.values[0]",
    ),
    "no such container": (
        failure_policy({"action": "FailJob", "onExitCodes": BAD_EXIT | {"containerName": "x"}}),
        "spec.podFailurePolicy.rules[0].onExitCodes.containerName",
    ),
    "neither": (failure_policy({"action": "Ignore"}), "spec.podFailurePolicy.rules[0]"),
    "fail index": (
        failure_policy({"action": "FailIndex", "onExitCodes": BAD_EXIT}),
        "spec.podFailurePolicy.rules[0].action",
    ),
    "success": ({"successPolicy": {"rules": [{"succeededCount": 1}]}}, "spec.successPolicy"),
}


@pytest.mark.parametrize(("spec", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_job_is_refused_with_the_field(api, spec, field):
    """422 with one cause."""
    code, answer = api.call("POST", JOBS, job(**spec))
    assert code == 422 and [cause["field"] for cause in answer["details"]["causes"]] == [field]


def test_a_job_deleted_without_a_policy_leaves_its_pods(api):
    """The API's default for batch/v1 Jobs; clients that want otherwise say so."""
    start(api, job())
    api.call("DELETE", f"{JOBS}/j")
    api.settle()
    (left,) = pods(api)
    assert api.call("GET", f"{JOBS}/j")[0] == 404 and "ownerReferences" not in left["metadata"]


@pytest.mark.parametrize(("policy", "warned"), [(None, True), ("Background", False), ("Orphan", False)])
def test_deleting_a_job_without_a_policy_is_warned_of(api, policy, warned):
    """In a Warning header, as upstream words it."""
    start(api, job())
    answer = api.raw("DELETE", f"{JOBS}/j", {"propagationPolicy": policy} if policy else None)
    assert answer.status == 200
    assert [text.startswith("child pods are preserved by default") for text in answer.warnings] == [True] * warned

"""Binding, eviction, deletion and logs of pods."""

import asyncio
import json

import pytest

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.pod_subresources import read_log
from embedded.apiserver.request.messages import Request, Response

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def pod(name="p", meta=None, **spec):
    containers = [{"name": "c", "image": "busybox"}]
    return {"metadata": {"name": name} | (meta or {}), "spec": {"containers": containers} | spec}


def binding(node="n1", name="p", **meta):
    target = {"kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name} | meta, "target": target}


def eviction(name="p", **options):
    found = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
    return found | ({"deleteOptions": options} if options else {})


def budget(name="b", **spec):
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": "web"}}} | spec}


@pytest.fixture
def web(api):
    """Two ready pods of one application on a node."""
    for name in ("w1", "w2"):
        api.post(PODS, pod(name, {"labels": {"app": "web"}}, nodeName="n1"))
        api.set_pod_status(name, READY)
    return api


def conditions(obj):
    return {found["type"]: found["status"] for found in obj["status"].get("conditions", [])}


# -- binding ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", [f"{PODS}/p/binding", "/api/v1/namespaces/default/bindings"])
def test_binding_assigns_a_node_once(api, url):
    """The second binding is a conflict, to whatever node."""
    api.post(PODS, pod())
    assert api.post(url, binding(annotations={"a": "b"}))["status"] == "Success"
    bound = api.get(f"{PODS}/p")
    assert (bound["spec"]["nodeName"], conditions(bound)) == ("n1", {"PodScheduled": "True"})
    assert bound["metadata"]["annotations"] == {"a": "b"}
    code, status = api.call("POST", url, binding("n2"))
    assert (code, status["reason"]) == (409, "Conflict")
    assert 'already assigned to node "n1"' in status["message"]


def test_binding_another_pod_of_the_same_name_is_a_conflict(api):
    """A scheduler that decided about a pod that was replaced must not place the new one."""
    api.post(PODS, pod())
    assert api.call("POST", f"{PODS}/p/binding", binding(uid="someone-else"))[0] == 409
    assert "nodeName" not in api.get(f"{PODS}/p")["spec"]


def test_a_gated_pod_is_not_bound(api):
    """Nor is one that does not exist."""
    api.post(PODS, pod(schedulingGates=[{"name": "example.com/wait"}]))
    assert api.call("POST", f"{PODS}/p/binding", binding())[0] == 409
    assert api.call("POST", f"{PODS}/other/binding", binding(name="other"))[0] == 404


OTHER_BODIES = {
    "an eviction of another kind": ("eviction", {"apiVersion": "v1", "kind": "Pod"}, 'Pod in version "v1" cannot be'),
    "an eviction of another version": ("eviction", {"apiVersion": "v1", "kind": "Eviction"}, "the API version in the"),
    "an eviction elsewhere": (
        "eviction",
        {"metadata": {"name": "p", "namespace": "x"}},
        "the namespace of the provided",
    ),
    "an eviction of another": ("eviction", {"metadata": {"name": "q"}}, "name in URL does not match name in Eviction"),
    "a binding of another kind": ("binding", {"apiVersion": "v1", "kind": "Pod"}, 'Pod in version "v1" cannot be'),
    "a binding of another": (
        "binding",
        {"metadata": {"name": "q"}},
        "name in URL does not match name in Binding object",
    ),
    "a binding of nobody": ("binding", {"metadata": {}}, "name in URL does not match name in Binding object"),
    "a binding elsewhere": ("binding", {"metadata": {"name": "p", "namespace": "x"}}, "the namespace of the provided"),
    "a binding to no node": (
        "binding",
        {"target": {"kind": "Pod", "name": "n1"}},
        'target.kind: Unsupported value: "Pod"',
    ),
}


@pytest.mark.parametrize(("subresource", "body", "message"), OTHER_BODIES.values(), ids=OTHER_BODIES)
def test_a_body_about_something_else_is_refused(api, subresource, body, message):
    """400, and the pod stays as it is and where it is."""
    pods = api.post(PODS, pod())
    whole = {"metadata": {"name": "p"}, "target": {"name": "n1"}} if subresource == "binding" else eviction()
    code, status = api.call("POST", f"{PODS}/p/{subresource}", whole | body)
    assert (code, status["reason"], status["message"].startswith(message)) == (400, "BadRequest", True), status
    assert api.get(f"{PODS}/p") == pods


def test_an_eviction_may_be_of_its_older_version(api):
    """As client libraries before 1.22 sent it."""
    api.post(PODS, pod())
    assert api.post(f"{PODS}/p/eviction", eviction() | {"apiVersion": "policy/v1beta1"})["status"] == "Success"


def test_a_gated_pod_says_so_until_it_is_bound(api):
    """From its creation on, whatever status it is created with."""
    api.post(PODS, pod(schedulingGates=[{"name": "example.com/wait"}]) | {"status": {"phase": "Running"}})
    assert api.get(f"{PODS}/p")["status"] == {
        "phase": "Pending",
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ],
    } | {"qosClass": "BestEffort"}
    api.patch(f"{PODS}/p", {"spec": {"schedulingGates": None}})
    api.post(f"{PODS}/p/binding", binding())
    (told,) = api.get(f"{PODS}/p")["status"]["conditions"]
    assert (told["status"], set(told)) == ("True", {"type", "status", "lastTransitionTime"})


@pytest.mark.parametrize(("subresource", "body"), [("binding", binding()), ("eviction", eviction())])
def test_what_a_pod_takes_is_decoded_strictly(api, subresource, body):
    """Unknown fields are told or refused, and wrong types refused."""
    url = f"{PODS}/p/{subresource}"
    api.post(PODS, pod())
    code, status = api.call("POST", f"{url}?fieldValidation=Strict", body | {"nope": 1})
    assert (code, 'strict decoding error: unknown field "nope"' in status["message"]) == (400, True)
    code, status = api.call("POST", url, body | {"metadata": {"name": 5}})
    assert (code, "cannot unmarshal number into Go struct field ObjectMeta" in status["message"]) == (400, True)
    answer = api.raw("POST", url, body | {"nope": 1})
    assert (answer.status, answer.warnings) == (201, ('unknown field "nope"',))


def test_a_dry_run_binds_nothing(api):
    """dryRun=All answers as if, and changes nothing."""
    before = api.post(PODS, pod())
    assert api.call("POST", f"{PODS}/p/binding?dryRun=All", binding())[0] == 201
    assert api.get(f"{PODS}/p") == before


def test_of_many_racing_bindings_exactly_one_wins(api):
    """A hundred schedulers, one winner."""
    api.post(PODS, pod())

    async def race():
        async def bind(number):
            body = json.dumps(binding(f"n{number}")).encode()
            return (await api.core.handle(Request("POST", f"{PODS}/p/binding", body=body))).status

        return await asyncio.gather(*(bind(number) for number in range(100)))

    codes = asyncio.run(race())
    assert (codes.count(201), codes.count(409)) == (1, 99)


# -- eviction --------------------------------------------------------------------------------------------------


def test_eviction_respects_the_budget(web):
    """429 with the cause clients look for; the pod stays untouched."""
    web.post(BUDGETS, budget(minAvailable=2))
    code, status = web.call("POST", f"{PODS}/w1/eviction", eviction("w1"))
    assert (code, status["reason"]) == (429, "TooManyRequests")
    assert status["details"]["causes"][0]["reason"] == "DisruptionBudget"
    assert "deletionTimestamp" not in web.get(f"{PODS}/w1")["metadata"]


def test_a_budget_is_spent_one_pod_at_a_time(web):
    """The second eviction meets the budget that the first has used up."""
    web.post(BUDGETS, budget(minAvailable=1))
    assert web.call("POST", f"{PODS}/w1/eviction", eviction("w1"))[0] == 201
    assert web.call("POST", f"{PODS}/w2/eviction", eviction("w2"))[0] == 429


def test_an_evicted_pod_says_why_and_keeps_its_grace(web):
    """Condition DisruptionTarget; the grace period comes from the options."""
    web.call("POST", f"{PODS}/w1/eviction", eviction("w1", gracePeriodSeconds=7))
    found = web.get(f"{PODS}/w1")
    assert conditions(found)["DisruptionTarget"] == "True"
    assert found["metadata"]["deletionGracePeriodSeconds"] == 7


def test_pods_that_do_not_serve_need_no_budget(web):
    """A pending or finished pod goes at once, however tight the budget."""
    web.post(BUDGETS, budget(minAvailable="100%"))
    web.post(PODS, pod("new", {"labels": {"app": "web"}}))
    assert web.call("POST", f"{PODS}/new/eviction", eviction("new"))[0] == 201
    web.set_pod_status("w1", {"phase": "Succeeded"})
    assert web.call("POST", f"{PODS}/w1/eviction", eviction("w1"))[0] == 201


@pytest.mark.parametrize("preconditions", [{"uid": "x"}, {"resourceVersion": "1"}], ids=["uid", "resourceVersion"])
def test_eviction_of_another_pod_than_meant_is_a_conflict(web, preconditions):
    """Preconditions hold for evictions too, and the pod that is there is not touched."""
    before = web.get(f"{PODS}/w1")
    code, _ = web.call("POST", f"{PODS}/w1/eviction", eviction("w1", preconditions=preconditions))
    assert code == 409
    assert web.get(f"{PODS}/w1") == before


def test_eviction_of_the_very_pod_that_is_meant(web):
    """Both preconditions name the pod as it is, before the eviction itself changes it."""
    meta = web.get(f"{PODS}/w1")["metadata"]
    asked = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    assert web.call("POST", f"{PODS}/w1/eviction", eviction("w1", preconditions=asked))[0] == 201


@pytest.mark.parametrize(("query", "options"), [("?dryRun=All", {}), ("", {"dryRun": ["All"]})], ids=["query", "body"])
def test_a_dry_run_evicts_nothing(web, query, options):
    """It is asked for in either place, answers as if, and leaves pod and budget as they were; a budget forbids it too."""
    web.post(BUDGETS, budget(minAvailable=1))
    web.settle()
    before = web.get(f"{PODS}/w1"), web.get(f"{BUDGETS}/b")
    assert web.call("POST", f"{PODS}/w1/eviction{query}", eviction("w1", **options))[0] == 201
    web.settle()
    assert (web.get(f"{PODS}/w1"), web.get(f"{BUDGETS}/b")) == before
    web.call("POST", f"{PODS}/w2/eviction", eviction("w2"))
    assert web.call("POST", f"{PODS}/w1/eviction{query}", eviction("w1", **options))[0] == 429


def test_a_dry_run_counts_for_itself(web):
    """A budget whose status is behind is told of no change either."""
    web.post(BUDGETS, budget(minAvailable=1))
    before = web.get(f"{BUDGETS}/b")
    assert web.call("POST", f"{PODS}/w1/eviction?dryRun=All", eviction("w1"))[0] == 201
    assert web.get(f"{BUDGETS}/b") == before


LONG = 10**15


@pytest.mark.parametrize(
    ("own", "options"), [(LONG, {}), (30, {"gracePeriodSeconds": LONG})], ids=["of the pod", "asked"]
)
def test_a_pod_may_take_for_ever_to_go(api, own, options):
    """The time of its deletion is the last that can be written down, and its namespace waits without complaint."""
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    api.post("/api/v1/namespaces/team/configmaps", {"metadata": {"name": "c"}})
    pods = "/api/v1/namespaces/team/pods"
    body = pod()
    api.post(pods, body | {"spec": body["spec"] | {"nodeName": "n", "terminationGracePeriodSeconds": own}})
    code, found = api.call("DELETE", f"{pods}/p", options)
    assert code == 200, found
    found = api.get(f"{pods}/p")["metadata"]
    assert (found["deletionTimestamp"], found["deletionGracePeriodSeconds"]) == ("9999-12-31T23:59:59Z", LONG)
    api.call("DELETE", "/api/v1/namespaces/team")
    api.settle()
    assert [item["metadata"]["name"] for item in api.get("/api/v1/namespaces/team/configmaps")["items"]] == []
    assert api.get("/api/v1/namespaces/team")["status"]["phase"] == "Terminating"


@pytest.mark.parametrize("body", [eviction("w2"), {}, {"metadata": {}}], ids=["another's", "empty", "without a name"])
def test_an_eviction_names_its_pod(web, body):
    """400 unless the body names the pod that the address does."""
    code, status = web.call("POST", f"{PODS}/w1/eviction", body)
    assert code == 400 and "name in URL does not match" in status["message"]
    assert "deletionTimestamp" not in web.get(f"{PODS}/w1")["metadata"]


def test_two_budgets_over_one_pod(web):
    """No eviction is possible, and the message says why."""
    for name in ("b", "c"):
        web.post(BUDGETS, budget(name, minAvailable=0))
    code, status = web.call("POST", f"{PODS}/w1/eviction", eviction("w1"))
    assert code == 500 and "This pod has more than one PodDisruptionBudget" in status["message"]


BUDGET_CASES = {
    "number": ({"minAvailable": 1}, 1, 1),
    "percentage rounds up": ({"minAvailable": "51%"}, 2, 0),
    "max unavailable": ({"maxUnavailable": 1}, 1, 1),
    "max unavailable percentage": ({"maxUnavailable": "50%"}, 1, 1),
    "none": ({"maxUnavailable": 0}, 2, 0),
}


@pytest.mark.parametrize(("spec", "desired", "allowed"), BUDGET_CASES.values(), ids=BUDGET_CASES)
def test_the_status_of_a_budget_follows_its_pods(web, spec, desired, allowed):
    """expectedPods, currentHealthy, desiredHealthy and disruptionsAllowed."""
    web.post(BUDGETS, budget(**spec))
    web.settle()
    status = web.get(f"{BUDGETS}/b")["status"]
    numbers = [status[key] for key in ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")]
    assert numbers == [2, 2, desired, allowed]
    web.set_pod_status("w1", {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]})
    web.settle()
    assert web.get(f"{BUDGETS}/b")["status"]["currentHealthy"] == 1


def test_a_settled_budget_is_not_written_again(web):
    """Controllers that see their own writes come to rest."""
    web.post(BUDGETS, budget(minAvailable=1))
    web.settle()
    before = web.get(f"{BUDGETS}/b")["metadata"]["resourceVersion"]
    web.settle()
    assert web.get(f"{BUDGETS}/b")["metadata"]["resourceVersion"] == before


# -- deletion --------------------------------------------------------------------------------------------------


def delete(api, **options):
    return api.call("DELETE", f"{PODS}/p", options or None)


def test_an_unscheduled_or_finished_pod_goes_at_once(api):
    """There is no node to wait for."""
    api.post(PODS, pod())
    assert delete(api)[0] == 200
    assert api.call("GET", f"{PODS}/p")[0] == 404
    api.post(PODS, pod(nodeName="n1"))
    api.set_pod_status("p", {"phase": "Failed"})
    delete(api)
    assert api.call("GET", f"{PODS}/p")[0] == 404


def test_a_scheduled_pod_waits_for_its_node(api):
    """It is marked, with its own grace period; only grace 0 removes it."""
    api.post(PODS, pod(nodeName="n1", terminationGracePeriodSeconds=20))
    _, marked = delete(api)
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 20
    assert api.get(f"{PODS}/p")["metadata"]["deletionTimestamp"] == "2026-09-21T14:13:40Z"
    delete(api, gracePeriodSeconds=0)
    assert api.call("GET", f"{PODS}/p")[0] == 404


@pytest.mark.parametrize(("first", "second", "left"), [(20, 5, 5), (5, 20, 5)])
def test_grace_may_become_shorter_never_longer(api, first, second, left):
    """A second delete can only hurry."""
    api.post(PODS, pod(nodeName="n1"))
    delete(api, gracePeriodSeconds=first)
    delete(api, gracePeriodSeconds=second)
    assert api.get(f"{PODS}/p")["metadata"]["deletionGracePeriodSeconds"] == left


def test_a_finalizer_holds_a_pod_that_its_node_has_let_go(api):
    """It goes when the last finalizer does, and no new one may come."""
    api.post(PODS, pod(meta={"finalizers": ["example.com/a"]}, nodeName="n1"))
    delete(api, gracePeriodSeconds=0)
    code, _ = api.patch(f"{PODS}/p", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}})
    assert code == 422
    api.patch(f"{PODS}/p", {"metadata": {"finalizers": None}})
    assert api.call("GET", f"{PODS}/p")[0] == 404


def test_delete_preconditions(api):
    """Another uid or resourceVersion is a conflict."""
    api.post(PODS, pod())
    assert delete(api, preconditions={"uid": "x"})[0] == 409
    assert delete(api, preconditions={"resourceVersion": "1"})[0] == 409
    assert api.get(f"{PODS}/p")


def test_deleting_is_seen_by_a_watch(api):
    """The final event carries the last state and a new resourceVersion."""
    created = api.post(PODS, pod())
    since = created["metadata"]["resourceVersion"]
    delete(api)
    (event,) = api.watch(f"{PODS}?watch=1&resourceVersion={since}")
    assert (event["type"], event["object"]["metadata"]["name"]) == ("DELETED", "p")
    assert int(event["object"]["metadata"]["resourceVersion"]) > int(since)


# -- status and logs -------------------------------------------------------------------------------------------


def test_status_and_specification_are_written_apart(api):
    """The main resource ignores status; the status resource ignores everything but labels and annotations."""
    api.post(PODS, pod(nodeName="n1"))
    _, same = api.patch(f"{PODS}/p", {"status": {"phase": "Running"}})
    assert same["status"]["phase"] == "Pending"
    body = {"status": {"phase": "Running"}, "spec": {"nodeName": "n2"}, "metadata": {"labels": {"a": "b"}}}
    _, changed = api.patch(f"{PODS}/p/status", body)
    assert (changed["status"]["phase"], changed["spec"]["nodeName"]) == ("Running", "n1")
    assert changed["metadata"]["labels"] == {"a": "b"}


class FakeLogs:
    """A node's log server that remembers what it was asked."""

    def __init__(self):
        self.asked = []

    async def open(self, port, path, query):
        self.asked.append((port, path, dict(query)))
        return Response(200, b"line\n", "text/plain")


def test_a_log_is_read_from_the_pods_node(api):
    """The only container is the default; everything else of the query is passed on."""
    logs = FakeLogs()
    status = {"daemonEndpoints": {"kubeletEndpoint": {"Port": 1234}}}
    api.post("/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
    api.post(PODS, pod(nodeName="n1"))
    query = {"follow": "true", "tailLines": "3"}
    answer = asyncio.run(read_log(api.resources, logs, "default", "p", query))
    assert answer.body == b"line\n"
    assert logs.asked == [(1234, "/containerLogs/default/p/c", query)]


LOG_REFUSALS = {
    "node serves no logs": (pod(nodeName="n1"), {}, 501),
    "no such container": (pod(nodeName="n1"), {"container": "x"}, 400),
    "which container": (
        pod(nodeName="n1", containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]),
        {},
        400,
    ),
}


@pytest.mark.parametrize(("body", "query", "code"), LOG_REFUSALS.values(), ids=LOG_REFUSALS)
def test_a_log_that_cannot_be_read_is_refused(api, body, query, code):
    """Each with a status that says why."""
    api.post(PODS, body)
    with pytest.raises(StatusError) as refused:
        asyncio.run(read_log(api.resources, FakeLogs(), "default", "p", query))
    assert refused.value.code == code


def test_the_log_of_a_pod_without_a_node_is_empty(api):
    """204, as kube-apiserver answers where there is nothing to stream."""
    api.post(PODS, pod())
    answer = asyncio.run(read_log(api.resources, FakeLogs(), "default", "p", {}))
    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
def test_debug_is_refused_by_name(api, method):
    """501, and the message says what is not there."""
    api.post(PODS, pod())
    code, status = api.call(method, f"{PODS}/p/ephemeralcontainers")
    assert (code, status["reason"]) == (501, "NotImplemented")
    assert status["message"] == "debug is not supported by the embedded cluster"


def test_binding_ends_the_nomination(api):
    """What was kept for the pod is taken: nominatedNodeName is cleared, as by API servers from 1.35 on."""
    api.post(PODS, pod())
    api.patch(f"{PODS}/p/status", {"status": {"nominatedNodeName": "n1"}})
    assert api.get(f"{PODS}/p")["status"]["nominatedNodeName"] == "n1"
    api.post(f"{PODS}/p/binding", binding())
    assert "nominatedNodeName" not in api.get(f"{PODS}/p")["status"]

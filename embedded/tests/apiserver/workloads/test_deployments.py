"""Deployments and ReplicaSets: the controllers through the API, with pods that serve when the tests say so."""

import pytest

from embedded.apiserver.reconciling.template_hash import template_hash
from embedded.tests.apiserver.workload_objects import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    conditions,
    images,
    pods,
    serve,
    template,
    workload,
)

WEB = f"{DEPLOYMENTS}/web"


def start(api, where=DEPLOYMENTS, **spec):
    api.post(where, workload(**{"replicas": 3, **spec}))
    api.settle()
    return api.get(f"{where}/web")


def change(api, **spec):
    code, obj = api.patch(WEB, {"spec": spec}, "strategic")
    assert code == 200, obj
    api.settle()


def sizes(api):
    return sorted(each["spec"]["replicas"] for each in api.get(REPLICA_SETS)["items"])


def test_a_deployment_makes_a_replica_set_and_that_makes_pods(api):
    """Each controlled by the one above; complete when all serve."""
    start(api)
    (below,) = api.get(REPLICA_SETS)["items"]
    assert [owner["kind"] for owner in below["metadata"]["ownerReferences"]] == ["Deployment"]
    assert {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods(api)} == {below["metadata"]["uid"]}
    assert all(pod["metadata"]["generateName"] == f"{below['metadata']['name']}-" for pod in pods(api))
    serve(api)
    found = api.get(WEB)
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert found["status"]["readyReplicas"] == found["status"]["updatedReplicas"] == 3
    assert conditions(found) == {
        "Progressing": ("True", "NewReplicaSetAvailable"),
        "Available": ("True", "MinimumReplicasAvailable"),
    }


def test_an_update_rolls_and_a_way_back_does_too(api):
    """By one surplus pod; the old ReplicaSet is used again."""
    start(api)
    serve(api)
    change(api, template=template("a:2"))
    assert images(api) == ["a:1", "a:1", "a:1", "a:2"]
    for _ in range(3):
        serve(api)
    assert (images(api), sizes(api)) == (["a:2"] * 3, [0, 3])
    change(api, template=template("a:1"))
    for _ in range(4):
        serve(api)
    assert (images(api), sizes(api)) == (["a:1"] * 3, [0, 3])
    assert api.get(WEB)["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_a_paused_deployment_waits_with_its_update(api):
    """And goes on when it is resumed."""
    start(api)
    serve(api)
    change(api, paused=True, template=template("a:2"))
    assert images(api) == ["a:1"] * 3
    assert conditions(api.get(WEB))["Progressing"] == ("Unknown", "DeploymentPaused")
    change(api, paused=False)
    assert "a:2" in images(api)


def test_recreate_waits_for_the_last_old_pod(api):
    """Also for one that takes its time to end."""
    start(api, strategy={"type": "Recreate"}, replicas=1)
    (held,) = pods(api)
    assert api.patch(f"{PODS}/{held['metadata']['name']}", {"metadata": {"finalizers": ["a/b"]}})[0] == 200
    change(api, template=template("a:2"))
    assert pods(api) == [] and len(api.get(PODS)["items"]) == 1
    api.patch(f"{PODS}/{held['metadata']['name']}", {"metadata": {"finalizers": None}})
    api.settle()
    assert images(api) == ["a:2"]


def test_the_history_has_its_limit(api):
    """The oldest ReplicaSets go."""
    start(api, revisionHistoryLimit=1)
    for number in range(2, 5):
        serve(api)
        change(api, template=template(f"a:{number}"))
        for _ in range(4):
            serve(api)
    assert sizes(api) == [0, 3]


def test_one_that_does_not_come_up_in_time_is_late(api):
    """progressDeadlineSeconds; nothing else has to happen for it."""
    start(api, progressDeadlineSeconds=60)
    api.clock.advance(59)
    api.settle()
    assert conditions(api.get(WEB))["Progressing"] == ("True", "ReplicaSetUpdated")
    api.clock.advance(3)
    api.settle()
    assert conditions(api.get(WEB))["Progressing"] == ("False", "ProgressDeadlineExceeded")


def test_a_name_that_is_taken_by_another_template_is_left_alone(api):
    """The next one is tried."""
    wanted = start(api, replicas=0)["spec"]["template"]
    api.call("DELETE", WEB)
    api.settle()
    other = workload(f"web-{template_hash(wanted, None)}", "other")
    api.post(
        REPLICA_SETS, other | {"spec": other["spec"] | {"selector": {"matchLabels": {"app": "web"}}, "replicas": 0}}
    )
    start(api)
    api.clock.advance(2)
    api.settle()
    assert api.get(WEB)["status"]["collisionCount"] == 1 and images(api) == ["a:1"] * 3


@pytest.mark.parametrize("where", [DEPLOYMENTS, REPLICA_SETS])
def test_scale_is_read_and_written(api, where):
    """GET and PUT of autoscaling/v1 Scale."""
    start(api, where)
    scale = api.get(f"{where}/web/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 3, "selector": "app=web"})
    code, _ = api.call("PUT", f"{where}/web/scale", scale | {"spec": {"replicas": 1}})
    api.settle()
    assert code == 200 and len(pods(api)) == 1


def test_deletion_takes_everything_below_along(api):
    """Unless it orphans."""
    start(api)
    api.call("DELETE", f"{WEB}?propagationPolicy=Orphan")
    api.settle()
    (below,) = api.get(REPLICA_SETS)["items"]
    assert "ownerReferences" not in below["metadata"] and len(pods(api)) == 3
    start(api)
    (adopted,) = api.get(REPLICA_SETS)["items"]
    assert adopted["metadata"]["uid"] == below["metadata"]["uid"] and adopted["metadata"]["ownerReferences"]
    api.call("DELETE", WEB)
    api.settle()
    assert pods(api) == [] and api.get(REPLICA_SETS)["items"] == []


def test_a_replica_set_adopts_orphans_and_releases_strangers(api):
    """By its selector; another controller's pods are not touched."""
    api.post(PODS, {"metadata": {"name": "orphan", "labels": {"app": "web"}}, "spec": template()["spec"]})
    start(api, REPLICA_SETS)
    assert "orphan" in {pod["metadata"]["name"] for pod in pods(api)} and len(pods(api)) == 3
    assert api.get(f"{PODS}/orphan")["metadata"]["ownerReferences"][0]["name"] == "web"
    api.patch(f"{PODS}/orphan", {"metadata": {"labels": {"app": "own"}}})
    api.settle()
    assert "ownerReferences" not in api.get(f"{PODS}/orphan")["metadata"] and len(pods(api)) == 4
    second = workload("second", replicas=3)
    api.post(REPLICA_SETS, second)
    api.settle()
    assert len(pods(api)) == 7, "the pods of one are not the pods of the other"


def test_what_cannot_be_made_is_told_and_tried_again(api):
    """A priority class that is not there yet."""
    start(api, template=template(priorityClassName="late"))
    (below,) = api.get(REPLICA_SETS)["items"]
    assert conditions(below) == {"ReplicaFailure": ("True", "FailedCreate")}
    assert conditions(api.get(WEB))["ReplicaFailure"] == ("True", "FailedCreate")
    api.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "late"}, "value": 1})
    api.clock.advance(120)
    api.settle()
    assert len(pods(api)) == 3 and "ReplicaFailure" not in conditions(api.get(WEB))


def test_a_pod_is_available_once_it_was_ready_for_long_enough(api):
    """minReadySeconds; the look comes by itself."""
    start(api, minReadySeconds=30, replicas=1)
    serve(api, since="2026-09-21T14:13:20Z")
    assert "availableReplicas" not in api.get(WEB)["status"]
    api.clock.advance(30)
    api.settle()
    assert api.get(WEB)["status"]["availableReplicas"] == 1


def test_a_budget_by_share_counts_what_the_deployment_wants(api):
    """Not the pods that happen to be there, nor what one of two ReplicaSets wants."""
    budget = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": "34%"}}
    api.post("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget)
    start(api)
    serve(api)
    change(api, template=template("a:2"))
    status = api.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")["status"]
    assert (len(pods(api)), status["expectedPods"], status["desiredHealthy"]) == (4, 3, 1)
    change(api, replicas=10)
    assert api.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/b")["status"]["expectedPods"] == 10

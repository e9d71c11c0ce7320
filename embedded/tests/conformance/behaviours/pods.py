"""Pods: what the server fills in, what it refuses, what may change."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import PODS, Object, container, pod


def _resources(t: Case, **amounts: dict[str, Any]) -> Object:
    created = t.create(PODS, pod("p", containers=[container(resources=amounts)]))
    found: Object = created["spec"]["containers"][0]["resources"]
    return found


# -- defaults --------------------------------------------------------------------------------------------------


@behaviour(pages.POD, fast=Via.ALL)
def a_new_pod_is_pending_with_its_defaults(t: Case) -> None:
    found = t.create(PODS, pod("p"))
    expected = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    assert {key: found["spec"][key] for key in expected} == expected
    first = found["spec"]["containers"][0]
    assert first["terminationMessagePath"] == "/dev/termination-log" and first["terminationMessagePolicy"] == "File"
    assert found["status"]["phase"] == "Pending"


@behaviour(pages.POD, Via.CODE)
def a_pod_that_names_no_scheduler_has_the_default_one(t: Case) -> None:
    found = t.create(PODS, PODS.object("p", spec={"containers": [container()]}), dry_run="All")
    assert found["spec"]["schedulerName"] == "default-scheduler" and found["spec"]["enableServiceLinks"] is True


@behaviour(pages.IMAGES, Via.CODE)
def the_pull_policy_follows_the_tag(t: Case) -> None:
    images = ("app:1", "app", "app:latest", "app@sha256:" + "0" * 64)
    found = t.create(PODS, pod("p", containers=[container(f"c{n}", image=image) for n, image in enumerate(images)]))
    policies = [item["imagePullPolicy"] for item in found["spec"]["containers"]]
    assert policies == ["IfNotPresent", "Always", "Always", "IfNotPresent"]


@behaviour(pages.RESOURCES, fast=Via.ALL)
def a_request_defaults_to_its_limit(t: Case) -> None:
    found = _resources(t, limits={"cpu": "1", "memory": "1Gi"}, requests={"cpu": "500m"})
    assert found["requests"] == {"cpu": "500m", "memory": "1Gi"}


@behaviour(pages.QUANTITY)
def amounts_are_written_in_canonical_form(t: Case) -> None:
    limits = {"cpu": "0.5", "memory": "1024Mi", "ephemeral-storage": "1500M"}
    assert _resources(t, limits=limits)["limits"] == {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1500M"}


@behaviour(pages.QUANTITY, Via.RAW)
def a_plain_number_is_an_amount_too(t: Case) -> None:
    assert _resources(t, limits={"cpu": 2, "memory": 1000})["limits"] == {"cpu": "2", "memory": "1k"}


@behaviour(pages.POD_QOS)
def the_qos_class_follows_requests_and_limits(t: Case) -> None:
    amounts = {"cpu": "1", "memory": "1Gi"}
    classes = []
    for name, given in (("g", {"limits": amounts}), ("b", {"requests": {"cpu": "1"}}), ("n", {})):
        found = t.create(PODS, pod(name, containers=[container(resources=given)]))
        classes.append(found["status"]["qosClass"])
    assert classes == ["Guaranteed", "Burstable", "BestEffort"]


@behaviour(pages.TAINTS + "#taint-based-evictions", Via.CODE)
def a_pod_tolerates_a_lost_node_for_five_minutes(t: Case) -> None:
    found = {item["key"]: item for item in t.create(PODS, pod("p"))["spec"]["tolerations"]}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        assert found[key] == {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}


@behaviour(pages.PRIORITY)
def the_priority_of_a_pod_is_that_of_its_class(t: Case) -> None:
    name = t.unique("class")
    t.given(r.PRIORITY_CLASSES, r.priority_class(name, 4321, preemptionPolicy="Never"))
    found = t.create(PODS, pod("p", priorityClassName=name))["spec"]
    assert (found["priority"], found["preemptionPolicy"]) == (4321, "Never")


@behaviour(pages.PRIORITY)
def a_pod_of_an_unknown_priority_class_is_forbidden(t: Case) -> None:
    with t.refused("Forbidden", "no PriorityClass with name no-such-class was found"):
        t.create(PODS, pod("p", priorityClassName="no-such-class"))


@behaviour(pages.PRIORITY, Via.CODE)
def a_pod_may_not_choose_a_priority_of_its_own(t: Case) -> None:
    with t.refused("Forbidden", "priority"):
        t.create(PODS, pod("p", priority=17))


# -- validation ------------------------------------------------------------------------------------------------

_REFUSED: tuple[tuple[str, str, Object, str], ...] = (
    ("a pod needs a container", "Required value", {"containers": []}, "spec.containers"),
    (
        "container names are unique",
        "Duplicate value",
        {"containers": [container("a"), container("a")]},
        "spec.containers[1].name",
    ),
    ("a container name is a dns label", "Invalid value", {"containers": [container("A_b")]}, "spec.containers[0].name"),
    ("a container needs an image", "Required value", {"containers": [{"name": "a"}]}, "spec.containers[0].image"),
    ("a restart policy is one of three", "Unsupported value", {"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
    (
        "a port is between 1 and 65535",
        "Invalid value",
        {"containers": [container(ports=[{"containerPort": 70000}])]},
        "spec.containers[0].ports[0].containerPort",
    ),
    (
        "an environment variable needs a name",
        "Required value",
        {"containers": [container(env=[{"name": "", "value": "x"}])]},
        "spec.containers[0].env[0].name",
    ),
    (
        "a mount needs a volume of its name",
        "Not found",
        {"containers": [container(volumeMounts=[{"name": "none", "mountPath": "/x"}])]},
        "spec.containers[0].volumeMounts[0].name",
    ),
    (
        "a volume name is unique",
        "Duplicate value",
        {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
        "spec.volumes[1].name",
    ),
    (
        "a request is at most its limit",
        "must be less than or equal to cpu limit",
        {"containers": [container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]},
        "spec.containers[0].resources.requests",
    ),
    (
        "an amount is not negative",
        "must be greater than or equal to 0",
        {"containers": [container(resources={"requests": {"cpu": "-1"}})]},
        "spec.containers[0].resources.requests[cpu]",
    ),
    (
        "an extended resource has a limit equal to its request",
        "",
        {"containers": [container(resources={"requests": {"example.com/gpu": "1"}})]},
        "spec.containers[0].resources",
    ),
    (
        "an extended resource is whole",
        "must be an integer",
        {"containers": [container(resources={"limits": {"example.com/gpu": "500m"}})]},
        "spec.containers[0].resources.limits[example.com/gpu]",
    ),
    (
        "huge pages need memory",
        "HugePages require cpu or memory",
        {"containers": [container(resources={"limits": {"hugepages-2Mi": "2Mi"}})]},
        "spec.containers[0].resources",
    ),
    (
        "a hook does one thing",
        "must specify a handler type",
        {"containers": [container(lifecycle={"preStop": {}})]},
        "spec.containers[0].lifecycle.preStop",
    ),
    (
        "a user has a number that a kernel knows",
        "must be between 0 and 2147483647, inclusive",
        {"securityContext": {"runAsUser": -1}},
        "spec.securityContext.runAsUser",
    ),
    (
        "a container that may not gain rights is not privileged",
        "cannot set `allowPrivilegeEscalation` to false",
        {"containers": [container(securityContext={"privileged": True, "allowPrivilegeEscalation": False})]},
        "spec.containers[0].securityContext",
    ),
    (
        "a pod without DNS brings its own",
        "must provide `dnsConfig` when `dnsPolicy` is None",
        {"dnsPolicy": "None"},
        "spec.dnsConfig",
    ),
    (
        "a path on the host leads nowhere else",
        "must not contain '..'",
        {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
        "spec.volumes[0].hostPath.path",
    ),
    (
        "a volume of a claim names it",
        "Required value",
        {"volumes": [{"name": "v", "persistentVolumeClaim": {}}]},
        "spec.volumes[0].persistentVolumeClaim.claimName",
    ),
    (
        "ephemeral containers come later",
        "cannot be set on create",
        {"ephemeralContainers": [container("late")]},
        "spec.ephemeralContainers",
    ),
    ("a probe does one thing", "", {"containers": [container(livenessProbe={})]}, "spec.containers[0].livenessProbe"),
    (
        "a toleration has a known operator",
        "",
        {"tolerations": [{"key": "a", "operator": "Maybe"}]},
        "spec.tolerations[0].operator",
    ),
)


@behaviour(pages.POD_LIFECYCLE, Via.RAW)
def a_negative_grace_period_is_one_of_a_second(t: Case) -> None:
    t.given(PODS, pod("p", terminationGracePeriodSeconds=-5, nodeName=t.node()))
    t.defer(lambda: t.raw.delete(PODS, t.ns, "p", grace=0))
    t.raw.delete(PODS, t.ns, "p")
    assert t.now(PODS, "p")["metadata"]["deletionGracePeriodSeconds"] == 1


def _enter(title: str, word: str, spec: Object, field: str) -> None:
    @behaviour(pages.POD, Via.RAW | Via.KUBECTL, Via.RAW, name=title)
    def invalid(t: Case) -> None:
        with t.refused("Invalid", field, word):
            t.create(PODS, pod("p", **spec))


for _row in _REFUSED:
    _enter(*_row)


@behaviour(pages.QUANTITY, Via.RAW | Via.KUBECTL)
def an_amount_that_is_none_is_a_bad_request(t: Case) -> None:
    with t.refused("BadRequest", "quantities must match"):
        _resources(t, limits={"cpu": "plenty"})


# -- changes ---------------------------------------------------------------------------------------------------


@behaviour(pages.POD_CONCEPT + "#pod-update-and-replacement", fast=Via.ALL)
def most_of_a_pod_never_changes(t: Case) -> None:
    t.given(PODS, pod("p"))
    with t.refused("Invalid", "pod updates may not change fields other than"):
        t.patch(PODS, "p", "merge", {"spec": {"hostNetwork": True}})


@behaviour(pages.POD_CONCEPT + "#pod-update-and-replacement")
def the_image_of_a_container_may_change(t: Case) -> None:
    t.given(PODS, pod("p"))
    found = t.patch(PODS, "p", "strategic", {"spec": {"containers": [{"name": "main", "image": "app:2"}]}})
    assert found["spec"]["containers"][0]["image"] == "app:2"


@behaviour(pages.POD_CONCEPT + "#pod-update-and-replacement", Via.CODE)
def tolerations_may_be_added_but_not_taken(t: Case) -> None:
    added = {"key": "example.com/x", "operator": "Exists"}
    held = t.given(PODS, pod("p"))["spec"]["tolerations"]
    assert added in t.patch(PODS, "p", "merge", {"spec": {"tolerations": [*held, added]}})["spec"]["tolerations"]
    with t.refused("Invalid", "spec.tolerations"):
        t.patch(PODS, "p", "merge", {"spec": {"tolerations": []}})


@behaviour(pages.POD_CONCEPT + "#pod-update-and-replacement", Via.CODE)
def a_deadline_may_be_set_and_shortened(t: Case) -> None:
    t.given(PODS, pod("p"))
    for seconds in (100, 50):
        t.patch(PODS, "p", "merge", {"spec": {"activeDeadlineSeconds": seconds}})
    with t.refused("Invalid", "activeDeadlineSeconds"):
        t.patch(PODS, "p", "merge", {"spec": {"activeDeadlineSeconds": 60}})

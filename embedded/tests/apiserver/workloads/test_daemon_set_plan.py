"""Where daemons run, and how they are updated, without a server."""

import msgspec
import pytest

from embedded.apiserver.apimachinery.objects import rfc3339
from embedded.apiserver.registry.defaults import default_pod_spec
from embedded.apiserver.registry.workload_defaults import default_daemon_set
from embedded.apiserver.workloads.daemon_nodes import Daemon, DaemonNode, daemon_template
from embedded.apiserver.workloads.daemon_set_plan import DaemonView, daemon_set_status, plan_daemon_set
from embedded.apiserver.workloads.pods import WorkloadPod
from embedded.tests.apiserver.conftest import NOON
from embedded.tests.apiserver.workload_objects import template, workload

NEW, OLD = "new", "old"


def node(name, *taints, **labels):
    found = [{"key": key, "effect": effect} for key, effect in taints]
    return msgspec.convert({"metadata": {"name": name, "labels": labels}, "spec": {"taints": found}}, DaemonNode)


def daemon_set(strategy=None, spec=None, **more):
    found = workload("ag", template=template(**(spec or {})), **more)
    found["metadata"] |= {"namespace": "default", "uid": "ds", "generation": 1}
    if strategy is not None:
        found["spec"]["updateStrategy"] = strategy
    default_daemon_set(found, default_pod_spec)
    return found


def pod(name, on, revision=NEW, phase="Running", ready=600, deleting=False, bound=True):
    meta = {
        "name": name,
        "uid": name,
        "creationTimestamp": rfc3339(NOON - 900),
        "labels": {"controller-revision-hash": revision},
    }
    if deleting:
        meta["deletionTimestamp"] = rfc3339(NOON)
    status = {"phase": phase}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": rfc3339(NOON - ready)}]
    spec = {"nodeName": on} if bound else daemon_template(daemon_set(), on, revision)["spec"]
    return msgspec.convert({"metadata": meta, "spec": spec, "status": status}, WorkloadPod)


def plan(pods, nodes=("a", "b", "c"), wanted=None, **more):
    found = plan_daemon_set(DaemonView(wanted or daemon_set(), NEW, [node(each) for each in nodes], pods, **more), NOON)
    return found.create, sorted(found.delete)


AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["x", "y"]}]},
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]},
            ]
        }
    }
}
PLACES = {
    "everywhere": ({}, node("a"), (True, True)),
    "a node that takes no pods": ({}, node("a", ("node.kubernetes.io/unschedulable", "NoSchedule")), (True, True)),
    "a node that is not ready": ({}, node("a", ("node.kubernetes.io/not-ready", "NoExecute")), (True, True)),
    "a taint not tolerated": ({}, node("a", ("gpu", "NoSchedule")), (False, True)),
    "a taint that drives out": ({}, node("a", ("gpu", "NoExecute")), (False, False)),
    "a taint that is a wish": ({}, node("a", ("gpu", "PreferNoSchedule")), (True, True)),
    "a taint tolerated": ({"tolerations": [{"operator": "Exists"}]}, node("a", ("gpu", "NoExecute")), (True, True)),
    "no network, and none needed": (
        {"hostNetwork": True},
        node("a", ("node.kubernetes.io/network-unavailable", "NoSchedule")),
        (True, True),
    ),
    "no network": ({}, node("a", ("node.kubernetes.io/network-unavailable", "NoSchedule")), (False, True)),
    "another label": ({"nodeSelector": {"pool": "x"}}, node("a", pool="y"), (False, False)),
    "the label": ({"nodeSelector": {"pool": "x"}}, node("a", pool="x"), (True, True)),
    "by affinity": ({"affinity": AFFINITY}, node("b", pool="y"), (True, True)),
    "by name": ({"affinity": AFFINITY}, node("a"), (True, True)),
    "by neither": ({"affinity": AFFINITY}, node("b", pool="z"), (False, False)),
    "a named node": ({"nodeName": "b"}, node("a"), (False, False)),
}


@pytest.mark.parametrize(("spec", "place", "expected"), PLACES.values(), ids=PLACES)
def test_node_selector_affinity_and_taints_decide_where(spec, place, expected):
    """Whether a daemon should run there, and whether one that does may stay."""
    found = Daemon(daemon_set(spec=spec)).standing(place)
    assert (found.should_run, found.may_stay) == expected


def test_the_pod_of_a_node_can_be_bound_to_no_other():
    """Its own tolerations stay, those of every daemon are added once."""
    own = [
        {"key": "mine", "operator": "Exists"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "tolerationSeconds": 5},
    ]
    made = daemon_template(daemon_set(spec={"tolerations": own, "affinity": AFFINITY}), "b", "h")
    terms = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    assert made["metadata"]["labels"] == {"app": "web", "controller-revision-hash": "h"}
    assert made["spec"]["tolerations"][0] == own[0] and len(made["spec"]["tolerations"]) == 7
    assert {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"} in made["spec"][
        "tolerations"
    ]


MANAGED = {
    "one for each node": ([], {}, (["a", "b", "c"], [])),
    "a pod that waits for its node is the node's": (
        [pod("1", "a", bound=False, phase="Pending", ready=None)],
        {},
        (["b", "c"], []),
    ),
    "a leaving pod holds its place": ([pod("1", "a", deleting=True), pod("2", "b"), pod("3", "c")], {}, ([], [])),
    "one too many": ([pod("1", "a"), pod("2", "a"), pod("3", "b"), pod("4", "c")], {}, ([], ["2"])),
    "one that ended is replaced": ([pod("1", "a", phase="Succeeded"), pod("2", "b"), pod("3", "c")], {}, ([], ["1"])),
    "one that failed too": ([pod("1", "a", phase="Failed"), pod("2", "b"), pod("3", "c")], {}, ([], ["1"])),
    "but not while it rests": (
        [pod("1", "a", phase="Failed"), pod("2", "b"), pod("3", "c")],
        {"resting": frozenset({"a"})},
        ([], []),
    ),
    "of a node that is gone": ([pod("1", "z", bound=False), *(pod(x, x) for x in "abc")], {}, ([], ["1"])),
}


@pytest.mark.parametrize(("pods", "more", "expected"), MANAGED.values(), ids=MANAGED)
def test_every_node_has_what_it_should_have(pods, more, expected):
    """One pod, and none that nobody wants."""
    assert plan(pods, **more) == expected


def rolling(**steps):
    return daemon_set({"type": "RollingUpdate", "rollingUpdate": steps})


OLDS = [pod(each, each, OLD) for each in "abc"]
UPDATES = {
    "one at a time": (rolling(), OLDS, ([], ["a"])),
    "two at a time": (rolling(maxUnavailable=2), OLDS, ([], ["a", "b"])),
    "a share": (rolling(maxUnavailable="50%"), OLDS, ([], ["a", "b"])),
    "not while another is missing": (rolling(), [pod("n", "a", ready=None), *OLDS[1:]], ([], [])),
    "a new one that serves makes way": (rolling(), [pod("n", "a"), *OLDS[1:]], ([], ["b"])),
    "what serves nobody goes at once": (rolling(), [pod("a", "a", OLD, ready=None), *OLDS[1:]], ([], ["a"])),
    "with all done nothing happens": (rolling(), [pod(x, x) for x in "abc"], ([], [])),
    "on deletion only": (daemon_set({"type": "OnDelete"}), OLDS, ([], [])),
    "a surplus first": (rolling(maxSurge=1, maxUnavailable=0), OLDS, (["a"], [])),
    "the new one is awaited": (rolling(maxSurge=1, maxUnavailable=0), [*OLDS, pod("n", "a", ready=None)], ([], [])),
    "then the old one goes": (rolling(maxSurge=1, maxUnavailable=0), [*OLDS, pod("n", "a")], ([], ["a"])),
    "and the next comes": (rolling(maxSurge=1, maxUnavailable=0), [pod("n", "a"), *OLDS[1:]], (["b"], [])),
    "an old one that serves nobody needs no surplus": (
        rolling(maxSurge=1, maxUnavailable=0),
        [pod("a", "a", OLD, ready=None), *OLDS[1:]],
        (["a", "b"], []),
    ),
}


@pytest.mark.parametrize(("wanted", "pods", "expected"), UPDATES.values(), ids=UPDATES)
def test_an_update_goes_node_by_node(wanted, pods, expected):
    """maxUnavailable without maxSurge, or the other way round."""
    assert plan(pods, wanted=wanted) == expected


def test_a_pod_that_is_only_ready_is_not_yet_available():
    """minReadySeconds holds the update up, and tells when to look again."""
    wanted = daemon_set(minReadySeconds=30)
    view = DaemonView(wanted, NEW, [node("a"), node("b")], [pod("n", "a", ready=10), pod("b", "b", OLD)])
    found = plan_daemon_set(view, NOON)
    assert (found.delete, found.look_again) == ([], NOON + 20)


def test_the_status_counts_nodes():
    """As `kubectl get daemonset` shows them."""
    nodes = [node("a"), node("b"), node("c"), node("d", ("gpu", "NoSchedule")), node("e", ("gpu", "NoSchedule"))]
    pods = [pod("1", "a"), pod("2", "b", OLD), pod("3", "d")]
    assert daemon_set_status(DaemonView(daemon_set(), NEW, nodes, pods), NOON) == {
        "desiredNumberScheduled": 3,
        "currentNumberScheduled": 2,
        "numberMisscheduled": 1,
        "numberReady": 2,
        "observedGeneration": 1,
        "updatedNumberScheduled": 1,
        "numberAvailable": 2,
        "numberUnavailable": 1,
    }

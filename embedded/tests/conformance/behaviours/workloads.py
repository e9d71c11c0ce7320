"""Deployments, ReplicaSets and DaemonSets; the list itself plays the kubelet."""

from __future__ import annotations

import contextlib
from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    PODS,
    REPLICA_SETS,
    REVISIONS,
    Object,
    container,
    workload,
)

_NEW = "registry.example/app:2"


def _pods(t: Case, count: int, name: str = "w") -> list[Object]:
    """The pods that stay, once there are so many."""

    def found() -> list[Object]:
        listed = t.raw.list(PODS, t.ns, f"app={name}")
        return [pod for pod in listed if "deletionTimestamp" not in pod["metadata"]]

    t.eventually(lambda: len(found()) == count, f"{count} pods of {name}")
    return sorted(found(), key=lambda pod: str(pod["metadata"]["name"]))


def _serve(t: Case, name: str = "w") -> None:
    """As a kubelet reports that pods run and are ready; one may go meanwhile."""
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    for pod in t.raw.list(PODS, t.ns, f"app={name}"):
        if "deletionTimestamp" not in pod["metadata"]:
            status = {"phase": "Running", "podIP": "127.64.0.9", "conditions": ready}
            with contextlib.suppress(Refused):
                t.change(PODS, pod["metadata"]["name"], {"status": status}, "status")


def _rolled(t: Case, image: str, count: int, name: str = "w") -> None:
    """Lets pods serve until all are of one image."""

    def done() -> bool:
        _serve(t, name)
        held = t.raw.list(PODS, t.ns, f"app={name}")
        staying = [pod for pod in held if "deletionTimestamp" not in pod["metadata"]]
        serving = [pod for pod in staying if pod["status"]["phase"] == "Running"]
        images = [pod["spec"]["containers"][0]["image"] for pod in staying]
        return images == [image] * count and serving == staying

    t.eventually(done, f"{count} pods of {image} that serve")


def _status(t: Case, resource: r.Resource, name: str = "w", **wanted: Any) -> Object:
    def found() -> Object | None:
        status: Object = t.now(resource, name).get("status", {})
        return status if wanted.items() <= status.items() else None

    status: Object = t.eventually(found, f"{wanted} of {name}")
    return status


@behaviour(pages.DEPLOYMENT, fast=Via.ALL)
def a_deployment_has_its_defaults(t: Case) -> None:
    spec = t.create(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=0))["spec"]
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}}
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)


@behaviour(pages.DEPLOYMENT + "#selector")
def a_deployment_must_select_its_own_pods(t: Case) -> None:
    with t.refused("Invalid", "spec.template.metadata.labels", "`selector` does not match template `labels`"):
        t.create(DEPLOYMENTS, workload(DEPLOYMENTS, "w", selector={"matchLabels": {"app": "other"}}))


@behaviour(pages.DEPLOYMENT + "#label-selector-updates")
def the_selector_of_a_deployment_stays(t: Case) -> None:
    t.given(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=0))
    labels = {"app": "w", "more": "m"}
    with t.refused("Invalid", "spec.selector", "field is immutable"):
        body = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        t.patch(DEPLOYMENTS, "w", "merge", {"spec": body})


@behaviour(pages.DEPLOYMENT + "#strategy", Via.CODE)
def an_update_must_be_able_to_go_on(t: Case) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}
    with t.refused("Invalid", "may not be 0 when `maxSurge` is 0"):
        t.create(DEPLOYMENTS, workload(DEPLOYMENTS, "w", strategy=rolling))


@behaviour(pages.DEPLOYMENT + "#creating-a-deployment", fast=Via.ALL, needs="controllers")
def a_deployment_makes_a_replica_set_and_pods(t: Case) -> None:
    t.create(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=2))
    held = _pods(t, 2)
    (below,) = t.raw.list(REPLICA_SETS, t.ns, "app=w")
    short = below["metadata"]["labels"]["pod-template-hash"]
    assert below["metadata"]["name"] == f"w-{short}"
    assert all(pod["metadata"]["labels"]["pod-template-hash"] == short for pod in held)
    assert below["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    _serve(t)
    status = _status(t, DEPLOYMENTS, availableReplicas=2)
    assert {c["type"]: c["status"] for c in status["conditions"]} == {"Available": "True", "Progressing": "True"}


@behaviour(pages.DEPLOYMENT + "#rolling-update-deployment", Via.CODE, needs="controllers")
def a_new_template_rolls_within_its_bounds(t: Case) -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    t.given(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=2, strategy=rolling))
    _pods(t, 2)
    _serve(t)
    _status(t, DEPLOYMENTS, availableReplicas=2)
    containers = [{"name": "main", "image": _NEW}]
    t.patch(DEPLOYMENTS, "w", "strategic", {"spec": {"template": {"spec": {"containers": containers}}}})
    _pods(t, 3)
    _rolled(t, _NEW, 2)
    _status(t, DEPLOYMENTS, replicas=2, updatedReplicas=2, availableReplicas=2)


@behaviour(pages.DEPLOYMENT + "#recreate-deployment", Via.RAW, needs="controllers")
def recreate_ends_all_pods_first(t: Case) -> None:
    t.given(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=1, strategy={"type": "Recreate"}))
    (old,) = _pods(t, 1)
    t.change(PODS, old["metadata"]["name"], {"metadata": {"finalizers": ["example.com/list"]}})
    t.change(DEPLOYMENTS, "w", {"spec": {"template": {"spec": {"containers": [container(image=_NEW)]}}}})
    _pods(t, 0)
    assert t.exists(PODS, old["metadata"]["name"])
    t.change(PODS, old["metadata"]["name"], {"metadata": {"finalizers": None}})
    assert _pods(t, 1)[0]["spec"]["containers"][0]["image"] == _NEW


@behaviour(pages.DEPLOYMENT + "#pausing-and-resuming-a-deployment", Via.RAW, needs="controllers")
def a_paused_deployment_does_not_roll(t: Case) -> None:
    t.given(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=1))
    _pods(t, 1)
    images = {"template": {"spec": {"containers": [container(image=_NEW)]}}}
    generation = t.change(DEPLOYMENTS, "w", {"spec": {"paused": True, **images}})["metadata"]["generation"]
    _status(t, DEPLOYMENTS, observedGeneration=generation)
    assert len(t.raw.list(REPLICA_SETS, t.ns, "app=w")) == 1
    t.change(DEPLOYMENTS, "w", {"spec": {"paused": False}})
    t.eventually(lambda: len(t.raw.list(REPLICA_SETS, t.ns, "app=w")) == 2, "the new template rolls")


@behaviour(pages.REPLICA_SET + "#non-template-pod-acquisitions", Via.CODE, needs="controllers")
def a_replica_set_takes_orphans_that_it_selects(t: Case) -> None:
    t.given(PODS, r.pod("orphan", {"app": "w"}))
    t.create(REPLICA_SETS, workload(REPLICA_SETS, "w", replicas=2))
    assert "orphan" in [pod["metadata"]["name"] for pod in _pods(t, 2)]
    assert t.now(PODS, "orphan")["metadata"]["ownerReferences"][0]["name"] == "w"


@behaviour(pages.REPLICA_SET + "#isolating-pods-from-a-replicaset", Via.CODE, needs="controllers")
def a_pod_that_is_no_longer_selected_is_let_go_and_replaced(t: Case) -> None:
    t.given(REPLICA_SETS, workload(REPLICA_SETS, "w", replicas=1))
    (held,) = _pods(t, 1)
    t.patch(PODS, held["metadata"]["name"], "merge", {"metadata": {"labels": {"app": "apart"}}})
    _pods(t, 1)
    t.eventually(lambda: "ownerReferences" not in t.now(PODS, held["metadata"]["name"])["metadata"], "let go")


@behaviour(pages.REPLICA_SET + "#pod-deletion-cost", Via.RAW, needs="controllers")
def the_cheapest_pod_goes_first(t: Case) -> None:
    t.given(REPLICA_SETS, workload(REPLICA_SETS, "w", replicas=3))
    cheap = _pods(t, 3)[1]["metadata"]["name"]
    t.change(PODS, cheap, {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-7"}}})
    t.change(REPLICA_SETS, "w", {"spec": {"replicas": 2}})
    assert cheap not in [pod["metadata"]["name"] for pod in _pods(t, 2)]


@behaviour(pages.REPLICA_SET + "#deleting-just-a-replicaset", Via.RAW, needs="controllers")
def the_pods_of_an_orphaning_deletion_stay(t: Case) -> None:
    t.given(REPLICA_SETS, workload(REPLICA_SETS, "w", replicas=1))
    (held,) = _pods(t, 1)
    t.raw.answer("DELETE", t.path(REPLICA_SETS, "w") + "?propagationPolicy=Orphan")
    t.gone(REPLICA_SETS, "w")
    assert "ownerReferences" not in t.now(PODS, held["metadata"]["name"])["metadata"]


def _daemons(t: Case, nodes: int, **spec: Any) -> tuple[str, list[str]]:
    """A DaemonSet on nodes of the list's own: the label that selects them, and their names."""
    label, names = t.unique("pool"), [t.node() for _ in range(nodes)]
    for name in names:
        t.change(NODES, name, {"metadata": {"labels": {"example.com/pool": label}}})
    wanted = workload(DAEMON_SETS, "w", **spec)
    wanted["spec"]["template"]["spec"]["nodeSelector"] = {"example.com/pool": label}
    t.create(DAEMON_SETS, wanted)
    return label, names


def _target(pod: Object) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    name: str = affinity["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
    return name


def _bind(t: Case, pod: Object) -> None:
    """As a scheduler puts it where it belongs; no kubelet there would let go of it."""
    name = pod["metadata"]["name"]
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": _target(pod)}}
    t.raw.call("POST", t.path(PODS, name, "binding"), body=body)
    t.defer(lambda: t.raw.answer("DELETE", t.path(PODS, name), query={"gracePeriodSeconds": 0}))


@behaviour(pages.DAEMON_SET, fast=Via.ALL, needs="controllers")
def a_daemon_set_makes_a_pod_for_every_node_it_selects(t: Case) -> None:
    _, nodes = _daemons(t, 2)
    held = _pods(t, 2)
    assert sorted(map(_target, held)) == sorted(nodes)
    keys = {each.get("key") for each in held[0]["spec"]["tolerations"]}
    assert {"node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"} <= keys
    _status(t, DAEMON_SETS, desiredNumberScheduled=2, currentNumberScheduled=2, numberReady=0)


@behaviour(pages.DAEMON_SET, Via.RAW, needs="controllers")
def a_daemon_set_follows_the_labels_of_nodes(t: Case) -> None:
    label, nodes = _daemons(t, 1)
    more = t.node()
    t.change(NODES, more, {"metadata": {"labels": {"example.com/pool": label}}})
    held = _pods(t, 2)
    assert sorted(map(_target, held)) == sorted([*nodes, more])
    for pod in held:  # of one that no node has yet, nobody promises when
        _bind(t, pod)
    t.change(NODES, nodes[0], {"metadata": {"labels": {"example.com/pool": None}}})
    assert [_target(pod) for pod in _pods(t, 1)] == [more]


@behaviour(pages.DAEMON_UPDATE, Via.RAW, needs="controllers")
def a_daemon_set_is_updated_node_by_node(t: Case) -> None:
    _daemons(t, 2)
    _pods(t, 2)
    _serve(t)
    _status(t, DAEMON_SETS, numberAvailable=2)
    t.change(DAEMON_SETS, "w", {"spec": {"template": {"spec": {"containers": [container(image=_NEW)]}}}})
    _status(t, DAEMON_SETS, updatedNumberScheduled=1, numberUnavailable=1)
    _rolled(t, _NEW, 2)
    assert sorted(each["revision"] for each in t.raw.list(REVISIONS, t.ns, "app=w")) == [1, 2]


@behaviour(pages.DAEMON_UPDATE + "#daemonset-update-strategy", Via.CODE)
def a_daemon_set_has_one_of_two_strategies(t: Case) -> None:
    with t.refused("Invalid", "spec.updateStrategy", '"RollingUpdate", "OnDelete"'):
        t.create(DAEMON_SETS, workload(DAEMON_SETS, "w", updateStrategy={"type": "Recreate"}))


# -- kubectl ---------------------------------------------------------------------------------------------------


@behaviour(pages.kubectl("rollout"), Via.KUBECTL, Via.ALL, needs="controllers")
def kubectl_rolls_out_a_deployment_and_undoes_it(t: Case) -> None:
    assert t.kubectl("create", "deployment", "w", "--image=app:1").out == "deployment.apps/w created\n"
    _rolled(t, "app:1", 1)
    assert "successfully rolled out" in t.kubectl("rollout", "status", "deployment/w", "--timeout=30s").out
    t.kubectl("set", "image", "deployment/w", "app=app:2")
    _rolled(t, "app:2", 1)
    t.kubectl("rollout", "status", "deployment/w", "--timeout=30s")
    lines = t.kubectl("rollout", "history", "deployment/w").out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].isdigit()] == ["1", "2"]
    assert "rolled back" in t.kubectl("rollout", "undo", "deployment/w").out
    _rolled(t, "app:1", 1)
    _status(t, DEPLOYMENTS, updatedReplicas=1, availableReplicas=1)
    assert t.now(DEPLOYMENTS, "w")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


@behaviour(pages.kubectl("rollout restart"), Via.KUBECTL, needs="controllers")
def kubectl_restarts_a_daemon_set_and_shows_its_history(t: Case) -> None:
    _daemons(t, 1)
    _pods(t, 1)
    assert "restarted" in t.kubectl("rollout", "restart", "daemonset/w").out

    def rolled() -> bool:
        _serve(t)
        status = t.now(DAEMON_SETS, "w")["status"]
        return bool(status.get("updatedNumberScheduled") == status.get("numberAvailable") == 1)

    t.eventually(rolled, "the restart is over")
    assert "successfully rolled out" in t.kubectl("rollout", "status", "daemonset/w", "--timeout=30s").out
    assert "with revision #1" in t.kubectl("rollout", "history", "daemonset/w", "--revision=1").out
    assert "rolled back" in t.kubectl("rollout", "undo", "daemonset/w").out


@behaviour(pages.kubectl("scale"), Via.KUBECTL, Via.ALL, needs="controllers")
def kubectl_scales_a_deployment(t: Case) -> None:
    t.given(DEPLOYMENTS, workload(DEPLOYMENTS, "w", replicas=1))
    assert t.kubectl("scale", "deployment/w", "--replicas=3").out == "deployment.apps/w scaled\n"
    _pods(t, 3)
    shown = t.kubectl("get", "deployment", "w", "--no-headers").out.split()
    assert shown[:2] == ["w", "0/3"]
    t.kubectl("delete", "deployment", "w")
    _pods(t, 0)

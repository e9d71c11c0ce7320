"""Silent nodes become Unknown, taints follow conditions, and pods leave nodes they do not tolerate."""

import pytest

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
PODS = "/api/v1/namespaces/default/pods"
UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"


def node(api, name="n", ready="True", **more):
    conditions = [{"type": kind, "status": status} for kind, status in ({"Ready": ready} | more).items()]
    return api.post(NODES, {"metadata": {"name": name}, "status": {"conditions": conditions}})


def lease(api, name="n", seconds=40):
    spec = {"holderIdentity": name, "leaseDurationSeconds": seconds}
    api.post(LEASES, {"metadata": {"name": name}, "spec": spec})


def renew(api, name="n"):
    stamp = f"2026-01-01T00:00:00.{int(api.clock()) % 1_000_000:06d}Z"
    code, _ = api.patch(f"{LEASES}/{name}", {"spec": {"renewTime": stamp}})
    assert code == 200


def after(api, seconds):
    api.clock.advance(seconds)
    api.settle()


def conditions(api, name="n"):
    return {c["type"]: (c["status"], c.get("reason")) for c in api.get(f"{NODES}/{name}")["status"]["conditions"]}


def taints(api, name="n"):
    found = api.get(f"{NODES}/{name}")["spec"].get("taints", [])
    return sorted((taint["key"].removeprefix("node.kubernetes.io/"), taint["effect"]) for taint in found)


def pod(api, name="p", node_name="n", ready=True, **spec):
    body = {"containers": [{"name": "c", "image": "i"}], "nodeName": node_name} | spec
    api.post(PODS, {"metadata": {"name": name}, "spec": body})
    if ready:
        running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        api.set_pod_status(name, running)


def deleted(api, name="p"):
    code, found = api.call("GET", f"{PODS}/{name}")
    return code == 404 or "deletionTimestamp" in found["metadata"]


def set_ready(api, status, name="n"):
    change = {"status": {"conditions": [{"type": "Ready", "status": status, "reason": "Test"}]}}
    assert api.patch(f"{NODES}/{name}/status", change, "strategic")[0] == 200
    api.settle()


def test_a_node_whose_lease_is_not_renewed_becomes_unknown(api):
    """40 s of silence; renewing keeps it."""
    node(api)
    lease(api)
    api.settle()
    for _ in range(6):
        after(api, 30)
        renew(api)
        api.settle()
    assert conditions(api)["Ready"][0] == "True" and taints(api) == []
    after(api, 40)
    assert conditions(api)["Ready"][0] == "True"
    after(api, 5)
    assert conditions(api)["Ready"] == ("Unknown", "NodeStatusUnknown")
    assert conditions(api)["MemoryPressure"] == ("Unknown", "NodeStatusNeverUpdated")
    assert taints(api) == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]


def test_a_longer_lease_gives_more_time(api):
    """max(40 s, leaseDurationSeconds)."""
    node(api)
    lease(api, seconds=120)
    api.settle()
    after(api, 100)
    assert conditions(api)["Ready"][0] == "True"
    after(api, 21)
    assert conditions(api)["Ready"][0] == "Unknown"


def test_a_heartbeat_in_the_status_counts_too(api):
    """A node without a lease is heard through its Ready condition."""
    node(api)
    api.settle()
    after(api, 30)
    beat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-09-21T14:13:50Z"}]
    api.patch(f"{NODES}/n/status", {"status": {"conditions": beat}}, "strategic")
    api.settle()
    after(api, 30)
    assert conditions(api)["Ready"][0] == "True"
    after(api, 15)
    assert conditions(api)["Ready"][0] == "Unknown"


def test_a_node_that_never_reports_gets_a_minute(api):
    """Its kubelet never posted status."""
    api.post(NODES, {"metadata": {"name": "n"}})
    api.settle()
    after(api, 59)
    assert "conditions" not in api.get(f"{NODES}/n")["status"]
    after(api, 6)
    assert conditions(api)["Ready"] == ("Unknown", "NodeStatusNeverUpdated")


def test_a_node_that_comes_back_is_free_of_taints(api):
    """The kubelet's own report decides."""
    node(api)
    api.settle()
    after(api, 50)
    assert taints(api) != []
    set_ready(api, "True")
    assert taints(api) == []


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("MemoryPressure", "True", [("memory-pressure", "NoSchedule")]),
        ("DiskPressure", "True", [("disk-pressure", "NoSchedule")]),
        ("PIDPressure", "True", [("pid-pressure", "NoSchedule")]),
        ("NetworkUnavailable", "True", [("network-unavailable", "NoSchedule")]),
        ("DiskPressure", "False", []),
        ("Ready", "False", [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]),
    ],
)
def test_taints_follow_conditions(api, kind, status, expected):
    """https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/#taint-nodes-by-condition"""
    node(api, **({"ready": status} if kind == "Ready" else {kind: status}))
    api.settle()
    assert taints(api) == expected


def test_cordoning_is_a_taint(api):
    """spec.unschedulable, both ways; a taint of the user's own stays."""
    node(api)
    mine = {"key": "mine", "effect": "NoSchedule"}
    api.patch(f"{NODES}/n", {"spec": {"unschedulable": True, "taints": [mine]}})
    api.settle()
    assert taints(api) == [("mine", "NoSchedule"), ("unschedulable", "NoSchedule")]
    api.patch(f"{NODES}/n", {"spec": {"unschedulable": None}})
    api.settle()
    assert taints(api) == [("mine", "NoSchedule")]


def test_pods_of_a_lost_node_are_not_ready(api):
    """Whoever balances over ready pods leaves them out; an event says why."""
    node(api)
    pod(api)
    api.settle()
    after(api, 50)
    ready = next(c for c in api.get(f"{PODS}/p")["status"]["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "False" and not deleted(api)
    told = {(e["involvedObject"]["kind"], e["reason"]) for e in api.get("/api/v1/events")["items"]}
    assert {("Node", "NodeNotReady"), ("Pod", "NodeNotReady")} <= told


def test_a_pod_is_evicted_when_its_toleration_is_over(api):
    """300 s by default, with the reason in a condition and an event."""
    node(api)
    pod(api)
    api.settle()
    set_ready(api, "False")
    after(api, 299)
    assert not deleted(api)
    after(api, 1)
    found = api.get(f"{PODS}/p")
    target = next(c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["reason"], deleted(api)) == ("DeletionByTaintManager", True)
    messages = [e["message"] for e in api.get("/api/v1/events")["items"] if e["reason"] == "TaintManagerEviction"]
    assert messages == ["Marking for deletion Pod default/p"]


def test_a_node_that_comes_back_in_time_keeps_its_pods(api):
    """The next silence starts a new count."""
    node(api)
    pod(api)
    api.settle()
    for _ in range(3):
        set_ready(api, "False")
        after(api, 200)
        set_ready(api, "True")
    assert not deleted(api)


def tolerate(seconds=None, key="dedicated", operator="Exists", **more):
    found = {"key": key, "operator": operator, "effect": "NoExecute"} | more
    return {"tolerations": [found if seconds is None else found | {"tolerationSeconds": seconds}]}


@pytest.mark.parametrize(
    ("spec", "gone_after"),
    [
        ({}, 0),
        (tolerate(), None),
        (tolerate(30), 30),
        (tolerate(-1), 0),
        (tolerate(key="other"), 0),
        (tolerate(operator="Equal", value="team"), None),
        (tolerate(operator="Equal", value="others"), 0),
        ({"tolerations": [{"operator": "Exists"}]}, None),
    ],
)
def test_a_taint_of_the_users_own_evicts_as_tolerations_say(api, spec, gone_after):
    """At once, later, or never."""
    node(api)
    pod(api, **spec)
    api.settle()
    api.patch(f"{NODES}/n", {"spec": {"taints": [{"key": "dedicated", "value": "team", "effect": "NoExecute"}]}})
    api.settle()
    if gone_after:
        assert not deleted(api)
    for _ in range(7):
        set_ready(api, "True")
        after(api, 5)
    assert deleted(api) is (gone_after is not None)


def test_a_pod_that_comes_to_a_tainted_node_is_judged_too(api):
    """And one that has finished is left where it is."""
    node(api)
    api.patch(f"{NODES}/n", {"spec": {"taints": [{"key": "dedicated", "effect": "NoExecute"}]}})
    pod(api, "done", ready=False)
    api.set_pod_status("done", {"phase": "Succeeded"})
    api.settle()
    pod(api, "late")
    api.settle()
    assert deleted(api, "late") and not deleted(api, "done")

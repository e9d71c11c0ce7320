"""What one node may do to itself, its pods and what they use, and not to those of others."""

import pytest

from embedded.apiserver.authorization.bootstrap_roles import NODE_RULES
from embedded.tests.apiserver.secured import GROUP, RBAC, Secured, rule, user

NODE = user("system:node:n1")
SHOP = "/api/v1/namespaces/default"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MERGE = {"content_type": "application/merge-patch+json"}
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


def pod(name, node, **spec):
    containers = [{"name": "c", "image": "busybox", "envFrom": [{"secretRef": {"name": f"env-{node}"}}]}]
    volumes = [{"name": "v", "secret": {"secretName": f"secret-{node}"}}]
    volumes.append({"name": "p", "projected": {"sources": [{"configMap": {"name": f"map-{node}"}}]}})
    volumes.append({"name": "d", "persistentVolumeClaim": {"claimName": f"claim-{node}"}})
    found = {"nodeName": node, "containers": containers, "volumes": volumes, "nodeSelector": {"secret": "label-only"}}
    return {"metadata": {"name": name}, "spec": found | spec}


@pytest.fixture
def server(clock):
    """The nodes n1 and n2 with a lease and a pod each, whose pods use objects of their own."""
    found = Secured(clock)
    found.make(f"{SHOP}/serviceaccounts", {"metadata": {"name": "default"}})
    for node in ("n1", "n2"):
        labels = {"node-role.kubernetes.io/infra": ""}
        taints = [{"key": "shop", "effect": "NoSchedule"}]
        found.make("/api/v1/nodes", {"metadata": {"name": node, "labels": labels}, "spec": {"taints": taints}})
        found.make(LEASES, {"metadata": {"name": node}})
        found.make(f"{SHOP}/secrets", {"metadata": {"name": f"secret-{node}"}})
        found.make(f"{SHOP}/secrets", {"metadata": {"name": f"env-{node}"}})
        found.make(f"{SHOP}/configmaps", {"metadata": {"name": f"map-{node}"}})
        found.make(f"{SHOP}/serviceaccounts", {"metadata": {"name": f"robot-{node}"}})
        found.make(f"{SHOP}/pods", pod(f"p-{node}", node, serviceAccountName=f"robot-{node}"))
    found.make(f"{SHOP}/secrets", {"metadata": {"name": "label-only"}})
    return found


READS = {
    "its node": ("/api/v1/nodes/n1", 200, ""),
    "another node": ("/api/v1/nodes/n2", 403, "node 'n1' cannot read 'n2', only its own Node object"),
    "all nodes": ("/api/v1/nodes", 403, "node 'n1' cannot read all nodes, only its own Node object"),
    "its pod": (f"{SHOP}/pods/p-n1", 200, ""),
    "another's pod": (f"{SHOP}/pods/p-n2", 403, "no relationship found between node 'n1' and this object"),
    "its pods": ("/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", 200, ""),
    "its pods in other words": ("/api/v1/pods?fieldSelector=spec.nodeName%3D%3Dn1", 200, ""),
    "another's pods": (
        "/api/v1/pods?fieldSelector=spec.nodeName%3Dn2",
        403,
        "can only list/watch pods with spec.nodeName field selector",
    ),
    "all pods": ("/api/v1/pods", 403, "can only list/watch pods with spec.nodeName field selector"),
    "its pods inside another value": (r"/api/v1/pods?fieldSelector=status.phase!%3Da\,spec.nodeName%3Dn1", 403, ""),
    "a secret of its pod": (f"{SHOP}/secrets/secret-n1", 200, ""),
    "a secret in the environment": (f"{SHOP}/secrets/env-n1", 200, ""),
    "a secret of another's pod": (f"{SHOP}/secrets/secret-n2", 403, "no relationship found between node 'n1'"),
    "a word of its pod that is no reference": (f"{SHOP}/secrets/label-only", 403, "no relationship found"),
    "a secret by its name": (f"{SHOP}/secrets?fieldSelector=metadata.name%3Dsecret-n1", 200, ""),
    "all secrets": (f"{SHOP}/secrets", 403, "No Object name found"),
    "secrets everywhere": ("/api/v1/secrets", 403, "can only read namespaced object of this type"),
    "a config map of its pod": (f"{SHOP}/configmaps/map-n1", 200, ""),
    "a config map of another's pod": (f"{SHOP}/configmaps/map-n2", 403, ""),
    "a claim of its pod": (f"{SHOP}/persistentvolumeclaims/claim-n1", 404, ""),
    "a claim of another's pod": (f"{SHOP}/persistentvolumeclaims/claim-n2", 403, ""),
    "the account of its pod": (f"{SHOP}/serviceaccounts/robot-n1", 200, ""),
    "the account of another's pod": (f"{SHOP}/serviceaccounts/robot-n2", 403, ""),
    "its lease": (f"{LEASES}/n1", 200, ""),
    "another's lease": (f"{LEASES}/n2", 403, "can only access node lease with the same name as the requesting node"),
    "leases of others": (
        "/apis/coordination.k8s.io/v1/namespaces/default/leases/n1",
        403,
        'can only access leases in the "kube-node-lease" system namespace',
    ),
    "services": ("/api/v1/services", 200, ""),
    "jobs": ("/apis/batch/v1/jobs", 403, ""),
}


@pytest.mark.parametrize(("path", "code", "message"), READS.values(), ids=READS)
def test_a_node_reads_what_is_its_own(server, path, code, message):
    """In the words of upstream's node authorizer."""
    found, answer = server.call("GET", path, who=NODE)
    assert found == code and message in answer.get("message", ""), answer


WRITES = {
    "its status": ("PATCH", "/api/v1/nodes/n1/status", READY, 200, ""),
    "its labels": ("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"a": "b"}}}, 200, ""),
    "labels that a kubelet sets": (
        *("PATCH", "/api/v1/nodes/n1"),
        {
            "metadata": {
                "labels": {"topology.kubernetes.io/zone": "a", "x.node.kubernetes.io/b": "c", "k8s.io.me/d": "e"}
            }
        },
        *(200, ""),
    ),
    "labels that say what may run there": (
        *("PATCH", "/api/v1/nodes/n1"),
        {"metadata": {"labels": {"shop.node-restriction.kubernetes.io/pci": "1", "foo.k8s.io/x": "1", "a": "b"}}},
        403,
        'nodes "n1" is forbidden: is not allowed to modify labels: foo.k8s.io/x, '
        "shop.node-restriction.kubernetes.io/pci",
    ),
    "the end of such a label": (
        *("PATCH", "/api/v1/nodes/n1", {"metadata": {"labels": {"node-role.kubernetes.io/infra": None}}}, 403),
        "is not allowed to modify labels: node-role.kubernetes.io/infra",
    ),
    "such a label through its status": (
        *("PATCH", "/api/v1/nodes/n1/status", {"metadata": {"labels": {"foo.k8s.io/x": "1"}}}, 403),
        "is not allowed to modify labels: foo.k8s.io/x",
    ),
    "the end of its taints": (
        *("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": None}}, 403),
        'nodes "n1" is forbidden: node "n1" is not allowed to modify taints',
    ),
    "another value of a taint": (
        *("PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "shop", "value": "x", "effect": "NoSchedule"}]}}),
        *(403, "is not allowed to modify taints"),
    ),
    "its owner": (
        *("PATCH", "/api/v1/nodes/n1"),
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]}},
        *(403, 'node "n1" is not allowed to modify ownerReferences'),
    ),
    "where its configuration is": (
        *("PATCH", "/api/v1/nodes/n1", {"spec": {"configSource": {"configMap": {"name": "a", "namespace": "b"}}}}),
        *(403, 'node "n1" is not allowed to update configSource to a new non-nil configSource'),
    ),
    "that it takes no pods": ("PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}}, 200, ""),
    "labels of its pod through its status": (
        *("PATCH", f"{SHOP}/pods/p-n1/status", {"metadata": {"labels": {"a": "b"}}}, 403),
        'node "n1" cannot update labels through pod status',
    ),
    "another's status": (
        *("PATCH", "/api/v1/nodes/n2/status", READY, 403),
        'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"',
    ),
    "another node": (
        *("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}, 403),
        'nodes "n3" is forbidden: node "n1" is not allowed to modify node "n3"',
    ),
    "its end": ("DELETE", "/api/v1/nodes/n1", None, 403, 'cannot delete resource "nodes"'),
    "its lease": ("PATCH", f"{LEASES}/n1", {"spec": {"holderIdentity": "n1"}}, 200, ""),
    "another's lease": ("PATCH", f"{LEASES}/n2", {"spec": {}}, 403, "can only access node lease with the same name"),
    "a lease of another": ("POST", LEASES, {"metadata": {"name": "n3"}}, 403, 'leases.coordination.k8s.io "n3" is'),
    "the status of its pod": ("PATCH", f"{SHOP}/pods/p-n1/status", {"status": {"phase": "Running"}}, 200, ""),
    "the status of another's pod": (
        *("PATCH", f"{SHOP}/pods/p-n2/status", {"status": {"phase": "Running"}}, 403),
        'pods "p-n2" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself',
    ),
    "its pod itself": ("PATCH", f"{SHOP}/pods/p-n1", {"metadata": {"labels": {"a": "b"}}}, 403, "cannot patch"),
    "the end of its pod": ("DELETE", f"{SHOP}/pods/p-n1", None, 200, ""),
    "the end of another's pod": (
        *("DELETE", f"{SHOP}/pods/p-n2", None, 403),
        'pods "p-n2" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself',
    ),
    "the eviction of another's pod": (
        *("POST", f"{SHOP}/pods/p-n2/eviction", {"metadata": {"name": "p-n2"}}, 403),
        'pods "p-n2" is forbidden: node "n1" can only evict pods with spec.nodeName set to itself',
    ),
    "a pod": ("POST", f"{SHOP}/pods", pod("new", "n1"), 403, 'node "n1" can only create mirror pods'),
    "a secret": ("PATCH", f"{SHOP}/secrets/secret-n1", {"data": {}}, 403, 'cannot patch resource "secrets"'),
    "events": (
        *("POST", f"{SHOP}/events"),
        {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}},
        *(201, ""),
    ),
}


def mirror(server, **changes):
    """Of a static pod of n1; `spec` and `owner` change a part of it, `owners` replaces the references."""
    uid = server.call("GET", "/api/v1/nodes/n1", None, NODE)[1]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    owners = changes.get("owners", [owner | changes.get("owner", {})])
    metadata = {"name": "m", "annotations": {"kubernetes.io/config.mirror": "h"}, "ownerReferences": owners}
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "busybox"}]}
    return {"metadata": metadata, "spec": spec | changes.get("spec", {})}


MIRRORS = {
    "its own": ({}, ""),
    "another's": ({"spec": {"nodeName": "n2"}}, "can only create pods with spec.nodeName set to itself"),
    "nobody's": ({"owners": []}, "can only create pods with an owner reference set to itself"),
    "with two owners": ({"owners": [{}, {}]}, "with a single owner reference set to itself"),
    "of another owner": ({"owner": {"name": "n2"}}, "with an owner reference set to itself"),
    "not controlled": ({"owner": {"controller": False}}, "with a controller owner reference set to itself"),
    "one that holds the node": ({"owner": {"blockOwnerDeletion": True}}, "must not set blockOwnerDeletion"),
    "of an earlier node": ({"owner": {"uid": "old"}}, "node n1 UID mismatch: expected old got "),
    "with an account": (
        {"spec": {"serviceAccountName": "default"}},
        "can not create pods that reference a service account",
    ),
    "with a secret": (
        {"spec": {"volumes": [{"name": "v", "secret": {"secretName": "secret-n2"}}]}},
        "can not create pods that reference secrets",
    ),
    "with a map": (
        {"spec": {"volumes": [{"name": "v", "configMap": {"name": "map-n2"}}]}},
        "can not create pods that reference configmaps",
    ),
    "with a claim": (
        {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}},
        "can not create pods that reference persistentvolumeclaims",
    ),
}


@pytest.mark.parametrize(("changes", "why"), MIRRORS.values(), ids=MIRRORS)
def test_a_node_makes_mirrors_of_its_static_pods(server, changes, why):
    """In the words of upstream's NodeRestriction (admitPodCreate); by a mirror no node comes to what is another's."""
    code, answer = server.call("POST", f"{SHOP}/pods", mirror(server, **changes), NODE)
    assert code == (403 if why else 201) and why in answer.get("message", ""), answer


@pytest.mark.parametrize(("method", "path", "body", "code", "message"), WRITES.values(), ids=WRITES)
def test_a_node_writes_what_is_its_own(server, method, path, body, code, message):
    """In the words of upstream's NodeRestriction."""
    found, answer = server.call(method, path, body, NODE, **(MERGE if method == "PATCH" else {}))
    assert found == code and message in answer.get("message", ""), answer


def test_a_node_registers_itself(server):
    new = user("system:node:n3")
    assert server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}}, new)[0] == 201
    assert server.call("POST", LEASES, {"metadata": {"name": "n3"}}, new)[0] == 201


def test_a_node_comes_with_taints_and_without_labels_of_others(server):
    """What it keeps away from itself is its own to say at first, what it is meant for is not."""
    new, meta = user("system:node:n3"), {"name": "n3", "labels": {"node-role.kubernetes.io/infra": ""}}
    taints = {"taints": [{"key": "shop", "effect": "NoSchedule"}]}
    code, refused = server.call("POST", "/api/v1/nodes", {"metadata": meta, "spec": taints}, new)
    assert code == 403 and refused["message"] == (
        'nodes "n3" is forbidden: node "n3" is not allowed to set the following labels: node-role.kubernetes.io/infra'
    )
    made = server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n3"}, "spec": taints}, new)[1]
    assert taints["taints"][0] in made["spec"]["taints"]


def test_what_a_node_is_bound_to_counts_as_well(server):
    """As the node authorizer is only the first to be asked."""
    server.grant("system:node:n1", rule("list", "nodes"))
    assert server.call("GET", "/api/v1/nodes", who=NODE)[0] == 200


def test_who_only_has_the_group_is_no_node(server):
    """The name tells which node it is; without one nothing is its own."""
    assert server.call("GET", "/api/v1/nodes/n1", who=user("n1", "system:nodes"))[0] == 403


def test_the_role_of_nodes_gives_nothing_by_itself(server):
    """It is there for those who bind it, with the rules that nodes go by."""
    binding = server.call("GET", f"{RBAC}/clusterrolebindings/system:node")[1]
    assert binding["roleRef"] == {"apiGroup": GROUP, "kind": "ClusterRole", "name": "system:node"}
    assert not binding.get("subjects")
    held = server.call("GET", f"{RBAC}/clusterroles/system:node")[1]["rules"]
    assert len(held) == len(NODE_RULES)

"""Real kubectl against a server process that enforces its rules."""

import json
import shutil
import time

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]


def can(live, *arguments, **options):
    words = live.kubectl("auth", "can-i", *arguments, **options).split()
    return next(word for word in words if word in ("yes", "no"))  # warnings may come before


def make(live, *arguments):
    return live.kubectl("create", *arguments)


@pytest.fixture
def anne(live):
    """A user who may read pods of `default`, by a role and a binding of kubectl's making."""
    make(live, "role", "reader", "--verb=get,list", "--resource=pods,pods/log", "-n", "default")
    make(
        live, "rolebinding", "reads", "--role=reader", "--user=anne", "--serviceaccount=default:robot", "-n", "default"
    )
    yield "--as=anne"
    live.kubectl("delete", "role/reader", "rolebinding/reads", "-n", "default")


def test_can_i_tells_the_truth(live, anne):
    """For oneself, for others by --as, and for accounts, whose groups come by themselves."""
    assert can(live, "delete", "nodes") == "yes"
    assert can(live, "get", "pods", anne, "-n", "default") == "yes"
    assert can(live, "get", "pods", "--subresource=log", anne, "-n", "default") == "yes"
    assert can(live, "delete", "pods", anne, "-n", "default", code=1) == "no"
    assert can(live, "get", "pods", anne, "-n", "kube-system", code=1) == "no"
    assert can(live, "list", "pods", "--as=system:serviceaccount:default:robot", "-n", "default") == "yes"
    assert can(live, "get", "/version", anne) == "yes"
    assert can(live, "get", "/metrics", anne, code=1) == "no"


def test_can_i_list_shows_the_rules(live, anne):
    lines = live.kubectl("auth", "can-i", "--list", anne, "-n", "default").splitlines()
    pods = next(line for line in lines if line.startswith("pods "))
    assert "[get list]" in pods
    assert any("selfsubjectaccessreviews.authorization.k8s.io" in line for line in lines)
    assert any("/healthz" in line for line in lines)
    everything = live.kubectl("auth", "can-i", "--list").splitlines()
    assert any(line.startswith("*.*") and "[*]" in line for line in everything)


def test_a_refusal_reads_as_kubectl_users_know_it(live, anne):
    assert live.kubectl("get", "pods", anne, "-n", "default").startswith("No resources found")
    told = live.kubectl("get", "pods", anne, "-n", "kube-system", code=1)
    assert told == (
        'Error from server (Forbidden): pods is forbidden: User "anne" cannot list resource "pods" in API group "" in '
        'the namespace "kube-system"\n'
    )
    who = live.kubectl("auth", "whoami", anne, "--as-group=painters", "--as-group=sinkers", "-o", "json")
    groups = ["painters", "sinkers", "system:authenticated"]
    assert json.loads(who)["status"]["userInfo"] == {"username": "anne", "groups": groups}


def test_roles_are_created_shown_and_reconciled(live):
    """`kubectl create clusterrole`, `get`, `describe`, `auth reconcile`, and gathering by a label."""
    selects = "rbac.example.com/part=true"
    make(live, "clusterrole", "whole", f"--aggregation-rule={selects}")
    make(live, "clusterrole", "part", "--verb=get,watch", "--resource=nodes", "--resource-name=n1")
    live.kubectl("label", "clusterrole", "part", selects)
    make(live, "clusterrolebinding", "wholes", "--clusterrole=whole", "--group=painters")
    assert "ClusterRole/whole" in live.kubectl("get", "clusterrolebinding", "wholes", "-o", "wide")
    for _ in range(100):
        told = live.kubectl("describe", "clusterrole", "whole")
        if "nodes" in told:
            break
        time.sleep(0.05)
    assert "nodes" in told and "[n1]" in told and "[get watch]" in told
    wanted = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "part"},
        "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }
    assert "reconciled" in live.kubectl("auth", "reconcile", "-f", "-", stdin=wanted)
    rules = json.loads(live.kubectl("get", "clusterrole", "part", "-o", "json"))["rules"]
    assert [each["resources"] for each in rules] == [["nodes"], ["pods"]]
    live.kubectl("delete", "clusterrole/whole", "clusterrole/part", "clusterrolebinding/wholes")


def test_nobody_gives_more_than_they_have(live, anne):
    """kubectl tells which permissions are lacking."""
    make(live, "clusterrole", "role-writer", "--verb=create", "--resource=roles.rbac.authorization.k8s.io")
    make(live, "clusterrolebinding", "role-writers", "--clusterrole=role-writer", "--user=anne")
    told = live.kubectl("create", "role", "r", "--verb=delete", "--resource=pods", anne, "-n", "default", code=1)
    assert "is attempting to grant RBAC permissions not currently held:" in told
    assert '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}' in told
    live.kubectl("create", "role", "r", "--verb=get", "--resource=pods", anne, "-n", "default")
    live.kubectl("delete", "role/r", "-n", "default")
    live.kubectl("delete", "clusterrole/role-writer", "clusterrolebinding/role-writers")


def test_the_audit_log_has_every_request(start_live, tmp_path):
    """As soon as the server is stopped, at the latest."""
    server = start_live("--audit-log", str(tmp_path / "audit.log"))
    server.kubectl("get", "pods", "--as=anne", code=1)
    server.kubectl("create", "namespace", "shop")
    server.stop()
    events = [json.loads(line) for line in (tmp_path / "audit.log").read_text().splitlines()]
    refused = [event for event in events if event["responseStatus"]["code"] == 403]
    assert refused and all(event["impersonatedUser"]["username"] == "anne" for event in refused)
    created = next(event for event in events if event["verb"] == "create")
    assert created["objectRef"]["resource"] == "namespaces" and created["user"]["username"] == "admin"
    assert created["annotations"]["authorization.k8s.io/decision"] == "allow"


def test_roles_outlive_a_restart(start_live, tmp_path):
    """With a state directory, and the default ones are not made twice."""
    first = start_live("--state-dir", str(tmp_path / "state"))
    make(first, "clusterrole", "mine", "--verb=get", "--resource=pods")
    held = first.kubectl("get", "clusterrole", "-o", "name")
    first.stop()
    second = start_live("--state-dir", str(tmp_path / "state"))
    assert second.kubectl("get", "clusterrole", "-o", "name") == held and "mine" in held

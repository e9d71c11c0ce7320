"""Real kubectl against the server as a process over TLS."""

import shutil
import subprocess

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]


@pytest.fixture
def kubectl(live, request):
    """kubectl in a namespace of the test's own; the namespace's name is `kubectl.namespace`."""
    namespace = f"t-{abs(hash(request.node.name)) % 10**8}"
    live.kubectl("create", "namespace", namespace)

    def run(*arguments, **options):
        return live.kubectl("-n", namespace, *arguments, **options)

    run.namespace = namespace
    yield run
    live.kubectl("delete", "namespace", namespace, "--wait=false")


def node(name="n1", **status):
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "fine"}]
    found = {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}, "conditions": conditions}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": found | status}


def pod(name="p", labels=None, image="busybox:1", **spec):
    containers = [{"name": "c", "image": image, "command": ["sleep", "1"]}]
    meta = {"name": name, "labels": labels or {"app": "web"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers} | spec}


def job(name="j"):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def definition(plural="gadgets", kind="Gadget"):
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.kubectl.example.com"},
        "spec": {
            "group": "kubectl.example.com",
            "names": {"plural": plural, "kind": kind, "shortNames": ["gd"]},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def gadget(size=1, **spec):
    body = {"apiVersion": "kubectl.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}}
    return body | {"spec": {"size": size} | spec}


def budget(name="b", **spec):
    found = {"selector": {"matchLabels": {"app": "web"}}} | spec
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": found}


def lease(name="l"):
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


def event(namespace, name="e"):
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": namespace},
        "reason": "Because",
        "message": "it happened",
        "type": "Normal",
    }


def make_ready(kubectl, *names):
    status = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    for name in names:
        kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", status)


APPLIED = {
    "pod": (pod(), {"metadata": {"labels": {"x": "y"}}}, "pod/p"),
    "config map": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}},
        {"data": {"k": "2"}},
        "configmap/c",
    ),
    "lease": (lease(), {"spec": {"holderIdentity": "you"}}, "lease.coordination.k8s.io/l"),
    "job": (job(), {"spec": {"parallelism": 2}}, "job.batch/j"),
}


def merged(body, change):
    if not isinstance(body, dict):
        return change
    return (
        body | {key: merged(body.get(key, {}), value) for key, value in change.items()}
        if isinstance(change, dict)
        else change
    )


@pytest.mark.parametrize(("body", "change", "shown"), APPLIED.values(), ids=APPLIED)
def test_apply_creates_keeps_and_changes(kubectl, body, change, shown):
    """created, unchanged, configured."""
    assert f"{shown} created" in kubectl("apply", "-f", "-", stdin=body)
    assert f"{shown} unchanged" in kubectl("apply", "-f", "-", stdin=body)
    assert f"{shown} configured" in kubectl("apply", "-f", "-", stdin=merged(body, change))
    assert f"{shown} configured" in kubectl("apply", "-f", "-", stdin=body)


def test_custom_resources_from_definition_to_deletion(kubectl):
    """apply, get with its own columns, short name, validation, strict fields, status, delete."""
    kubectl("apply", "-f", "-", stdin=definition())
    kubectl("wait", "--for=condition=Established", "crd/gadgets.kubectl.example.com", "--timeout=10s")
    assert "created" in kubectl("apply", "-f", "-", stdin=gadget())
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=gadget())
    assert "configured" in kubectl("apply", "-f", "-", stdin=gadget(3))
    assert kubectl("get", "gd").split() == ["NAME", "SIZE", "g", "3"]
    assert "spec.size" in kubectl("patch", "gadget", "g", "--type=merge", "-p", '{"spec":{"size":0}}', code=1)
    assert 'unknown field "spec.frob"' in kubectl("apply", "-f", "-", stdin=gadget(frob=1), code=1)
    kubectl("patch", "gadget", "g", "--subresource=status", "--type=merge", "-p", '{"status":{"seen":7}}')
    assert kubectl("get", "gadget", "g", "-o", "jsonpath={.status.seen}/{.metadata.generation}") == "7/2"
    assert "Size:" in kubectl("describe", "gadget", "g")
    kubectl("delete", "gadget", "g")
    assert "deleted" in kubectl("delete", "crd", "gadgets.kubectl.example.com", "--timeout=10s")


def test_get_in_all_its_forms(kubectl):
    """Columns, wide columns, YAML, JSON path, names, selectors and `all`."""
    kubectl("create", "-f", "-", stdin=pod())
    kubectl("create", "-f", "-", stdin=pod("q", {"app": "db"}))
    assert kubectl("get", "pods").splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert "NOMINATED NODE" in kubectl("get", "po", "-o", "wide")
    assert "kind: Pod" in kubectl("get", "pod", "p", "-o", "yaml")
    assert kubectl("get", "pods", "-o", "name", "-l", "app=db") == "pod/q\n"
    assert kubectl("get", "pods", "-o", "jsonpath={.items[*].metadata.name}") == "p q"
    assert kubectl("get", "pods", "--field-selector=metadata.name=q", "--no-headers").startswith("q ")
    assert "pod/p" in kubectl("get", "all")
    assert "LABELS" in kubectl("get", "pods", "--show-labels")
    assert 'pods "none" not found' in kubectl("get", "pod", "none", code=1)
    assert "No resources found" in kubectl("get", "pods", "-l", "app=none")
    assert "NAMESPACE" in kubectl("get", "pods", "-A")
    assert len(kubectl("get", "pods", "--chunk-size=1", "--no-headers").splitlines()) == 2


def test_every_type_is_listed_with_its_columns(kubectl, live):
    """The usual headings of each built-in type."""
    kubectl("create", "-f", "-", stdin=event(kubectl.namespace))
    kubectl("create", "-f", "-", stdin=lease())
    kubectl("create", "-f", "-", stdin=budget(minAvailable="50%"))
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    kubectl("create", "-f", "-", stdin=job())

    def heading(*arguments):
        return kubectl("get", *arguments).splitlines()[0].split()

    assert heading("namespaces") == ["NAME", "STATUS", "AGE"]
    assert heading("pc")[:3] == ["NAME", "VALUE", "GLOBAL-DEFAULT"]
    assert heading("pdb") == ["NAME", "MIN", "AVAILABLE", "MAX", "UNAVAILABLE", "ALLOWED", "DISRUPTIONS", "AGE"]
    assert heading("cm") == ["NAME", "DATA", "AGE"]
    assert heading("leases") == ["NAME", "HOLDER", "AGE"]
    assert heading("jobs") == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert heading("events") == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "it happened" in kubectl("events", "--for", "pod/p")


def test_generators_send_protobuf_and_are_understood(kubectl):
    """create configmap, priorityclass, secret and serviceaccount; create namespace made the namespace."""
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "b"
    name = f"class-{kubectl.namespace}"
    kubectl("create", "priorityclass", name, "--value=-7", "--description=low")
    assert kubectl("get", "pc", name, "-o", "jsonpath={.value}/{.description}") == "-7/low"
    kubectl("delete", "pc", name)
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="
    kubectl("create", "serviceaccount", "a")


def test_describe_prints_without_an_error(kubectl):
    """Pod, job, node, namespace, priority class, budget, config map, lease."""
    kubectl("create", "-f", "-", stdin=pod())
    kubectl("create", "-f", "-", stdin=event(kubectl.namespace))
    kubectl("create", "-f", "-", stdin=job())
    kubectl("create", "-f", "-", stdin=budget(maxUnavailable=1))
    kubectl("create", "-f", "-", stdin=lease())
    kubectl("create", "configmap", "c", "--from-literal=a=b")
    shown = kubectl("describe", "pod", "p")
    assert "QoS Class:" in shown and "BestEffort" in shown
    assert "Parallelism:" in kubectl("describe", "job", "j")
    assert "Holder Identity:" in kubectl("describe", "lease", "l")
    assert "Status:       Active" in kubectl("describe", "namespace", kubectl.namespace)
    for what in ("pc/system-node-critical", "pdb/b", "cm/c"):
        assert "Name:" in kubectl("describe", what)


def test_label_annotate_and_the_three_patches(kubectl):
    """merge, JSON and strategic."""
    kubectl("create", "-f", "-", stdin=pod())
    assert "labeled" in kubectl("label", "pod", "p", "a=1")
    assert "already has a value" in kubectl("label", "pod", "p", "a=2", code=1)
    kubectl("label", "pod", "p", "a-")
    assert "annotated" in kubectl("annotate", "pod", "p", "note=hello")
    kubectl("patch", "pod", "p", "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    kubectl("patch", "pod", "p", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/j","value":"1"}]')
    strategic = '{"spec":{"containers":[{"name":"c","image":"other:1"}]}}'
    assert "patched" in kubectl("patch", "pod", "p", "-p", strategic)
    assert "patched (no change)" in kubectl("patch", "pod", "p", "-p", strategic)
    found = kubectl("get", "pod", "p", "-o", "jsonpath={.metadata.labels}{.spec.containers[0].image}")
    assert found == '{"app":"web","j":"1","m":"1"}other:1'
    assert "may not change fields" in kubectl("patch", "pod", "p", "-p", '{"spec":{"nodeName":"x"}}', code=1)


def test_replace_edit_conflicts_and_dry_runs(kubectl):
    """replace; a stale resourceVersion; --dry-run=server; diff."""
    kubectl("create", "-f", "-", stdin=pod())
    live_object = kubectl("get", "pod", "p", "-o", "json")
    assert "replaced" in kubectl("replace", "-f", "-", stdin=live_object.replace("busybox:1", "busybox:2"))
    stale = live_object.replace("busybox:1", "busybox:3")
    assert "please apply your changes to the latest version" in kubectl("replace", "-f", "-", stdin=stale, code=1)
    assert "dry run" in kubectl("apply", "--dry-run=server", "-f", "-", stdin=pod("dry"))
    assert "not found" in kubectl("get", "pod", "dry", code=1)
    assert "busybox:9" in kubectl("diff", "-f", "-", stdin=pod(image="busybox:9"), code=1)


def test_watch_shows_changes_as_they_come(kubectl, live):
    """get -w prints the row there is, then one for each change."""
    kubectl("create", "-f", "-", stdin=pod())
    command = live.kubectl_command("-n", kubectl.namespace, "get", "pods", "-w", "--no-headers")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline().split()[:3] == ["p", "0/1", "Pending"]
            make_ready(kubectl, "p")
            assert process.stdout.readline().split()[2] == "Running"
            kubectl("delete", "pod", "p", "--now", "--wait=false")
            assert process.stdout.readline().startswith("p ")
        finally:
            process.kill()


def test_wait_and_delete(kubectl):
    """wait sees the condition; delete waits until the object is gone."""
    kubectl("create", "-f", "-", stdin=pod())
    make_ready(kubectl, "p")
    assert "condition met" in kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=10s")
    assert 'pod "p" deleted' in kubectl("delete", "pod", "p", "--timeout=10s")
    assert "not found" in kubectl("delete", "pod", "p", code=1)
    kubectl("delete", "pod", "p", "--ignore-not-found")
    kubectl("create", "-f", "-", stdin=pod("q"))
    assert '"q" deleted' in kubectl("delete", "pods", "--all")


def test_a_job_and_what_it_leaves(kubectl):
    """The controller makes pods; deleting the job deletes them."""
    kubectl("create", "-f", "-", stdin=job())
    kubectl("wait", "--for=create", "pod", "-l", "job-name=j", "--timeout=10s")
    name = kubectl("get", "pods", "-l", "batch.kubernetes.io/job-name=j", "-o", "name").strip()
    done = '{"status":{"phase":"Succeeded"}}'
    kubectl("patch", name, "--subresource=status", "--type=merge", "-p", done)
    kubectl("wait", "--for=condition=Complete", "job/j", "--timeout=10s")
    assert kubectl("get", "job", "j", "--no-headers").split()[:3] == ["j", "Complete", "1/1"]
    kubectl("delete", "job", "j")
    kubectl("wait", "--for=delete", name, "--timeout=10s")


def test_a_job_from_the_command_line(kubectl):
    """`create job` sends protobuf."""
    kubectl("create", "job", "j", "--image=busybox", "--", "sleep", "1")
    path = "jsonpath={.spec.template.spec.containers[0].command}{.spec.template.spec.restartPolicy}"
    assert kubectl("get", "job", "j", "-o", path) == '["sleep","1"]Never'


def test_a_manifest_of_kind_list(kubectl):
    """Both verbs that validate what they send."""
    maps = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    listed = {"apiVersion": "v1", "kind": "List", "items": maps}
    assert kubectl("create", "--save-config", "-f", "-", stdin=listed).count("created") == 2
    assert kubectl("apply", "-f", "-", stdin=listed).count("unchanged") == 2


def test_streams_into_a_pod_whose_node_leads_nobody_in(kubectl):
    """exec, attach and port-forward say so; no bare 404."""
    kubectl("create", "-f", "-", stdin=pod(nodeName="nowhere"))
    make_ready(kubectl, "p")
    for verb, arguments in (("exec", ["--", "ls"]), ("attach", []), ("port-forward", ["8080:80"])):
        said = kubectl(verb, "p", *arguments, code=1)
        assert 'node "nowhere" leads nobody into its pods' in said
    kubectl("delete", "pod", "p", "--timeout=10s")


def test_what_one_may_do(kubectl):
    """Everything."""
    assert kubectl("auth", "can-i", "delete", "pods").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_nodes_are_tainted_cordoned_and_drained(kubectl, live):
    """drain respects a disruption budget, then goes through."""
    live.kubectl("apply", "-f", "-", stdin=node())
    assert "tainted" in live.kubectl("taint", "node", "n1", "a=b:NoSchedule")
    assert "untainted" in live.kubectl("taint", "node", "n1", "a-")
    live.kubectl("cordon", "n1")
    assert "SchedulingDisabled" in live.kubectl("get", "nodes")
    live.kubectl("uncordon", "n1")
    assert "CONTAINER-RUNTIME" in live.kubectl("get", "nodes", "-o", "wide")
    kubectl("create", "-f", "-", stdin=pod(nodeName="n1", terminationGracePeriodSeconds=0))
    make_ready(kubectl, "p")
    assert "p " in live.kubectl("describe", "node", "n1")
    kubectl("create", "-f", "-", stdin=budget(minAvailable=1))
    blocked = live.kubectl("drain", "n1", "--force", "--timeout=1s", code=1)
    assert "Cannot evict pod as it would violate the pod's disruption budget" in blocked
    kubectl("delete", "pdb", "b")
    assert "node/n1 drained" in live.kubectl("drain", "n1", "--force", "--timeout=20s")
    live.kubectl("delete", "node", "n1")


def test_logs_of_a_node_without_a_log_server_say_so(kubectl):
    """A clear message instead of a hang."""
    kubectl("create", "-f", "-", stdin=pod(nodeName="nowhere"))
    assert "serves no logs" in kubectl("logs", "p", code=1)
    kubectl("delete", "pod", "p", "--force", "--grace-period=0")


def test_a_namespace_takes_its_contents_along(live):
    """delete namespace waits until everything is gone."""
    live.kubectl("create", "namespace", "gone")
    live.kubectl("-n", "gone", "create", "configmap", "c")
    assert 'namespace "gone" deleted' in live.kubectl("delete", "namespace", "gone", "--timeout=10s")
    assert "not found" in live.kubectl("get", "namespace", "gone", code=1)


def test_what_the_server_is_and_has(live):
    """version and api-resources."""
    assert "v1.32" in live.kubectl("version")
    resources = live.kubectl("api-resources", "-o", "wide")
    assert "poddisruptionbudgets" in resources and "batch/v1" in resources
    assert "policy/v1" in live.kubectl("api-versions")
    assert live.kubectl("get", "--raw", "/healthz") == "ok"


def test_the_server_is_quick_to_start(live):
    """Seconds would be felt by every test and every `up`; the bound is loose for busy machines."""
    assert live.start_seconds < 15

"""What `kubectl get` prints."""

import pytest

from local.apiserver import jsonpath
from local.apiserver.durations import human_duration
from local.apiserver.objects import parse_time, rfc3339
from local.apiserver.pod_status import pod_reason
from local.apiserver.printers import columns_of
from local.apiserver.registry import EVENTS, JOBS, NODES, PODS, PRIORITY_CLASSES

NOW = parse_time("2026-03-01T12:00:00Z")
AGES = {0: "0s", 119: "119s", 120: "2m", 330: "5m30s", 3600: "60m", 10800: "3h", 12000: "3h20m", 90000: "25h"} | {
    200000: "2d7h",
    864000: "10d",
    70000000: "2y80d",
    -5: "<invalid>",
}


@pytest.mark.parametrize(("seconds", "text"), AGES.items())
def test_ages(seconds, text):
    """Two units while that says more, one when it no longer does."""
    assert human_duration(seconds) == text


def row(rtype, obj, wide=True):
    return {column.name: column.cell(obj, NOW) for column in columns_of(rtype) if wide or column.priority == 0}


def meta(age=60, **more):
    return {"name": "x", "creationTimestamp": rfc3339(NOW - age)} | more


def pod(status=None, meta_more=None, **spec):
    return {
        "metadata": meta(**(meta_more or {})),
        "spec": {"containers": [{"name": "a"}, {"name": "b"}]} | spec,
        "status": {"phase": "Running"} | (status or {}),
    }


def container(ready=False, restarts=0, **state):
    return {"name": "a", "ready": ready, "restartCount": restarts, "state": state}


DELETED = {"deletionTimestamp": rfc3339(NOW)}
REASONS = {
    "phase": (pod({"phase": "Pending"}), "Pending"),
    "reason of the pod": (pod({"phase": "Failed", "reason": "OutOfcpu"}), "OutOfcpu"),
    "waiting": (pod({"containerStatuses": [container(waiting={"reason": "CrashLoopBackOff"})]}), "CrashLoopBackOff"),
    "ended with a reason": (pod({"containerStatuses": [container(terminated={"reason": "OOMKilled"})]}), "OOMKilled"),
    "ended by a signal": (pod({"containerStatuses": [container(terminated={"signal": 9})]}), "Signal:9"),
    "ended with a code": (pod({"containerStatuses": [container(terminated={"exitCode": 3})]}), "ExitCode:3"),
    "terminating": (pod(meta_more=DELETED), "Terminating"),
    "finished and deleted": (pod({"phase": "Succeeded"}, meta_more=DELETED), "Succeeded"),
    "init running": (
        pod({"initContainerStatuses": [container(running={})]}, initContainers=[{"name": "a"}]),
        "Init:0/1",
    ),
    "init failed": (
        pod({"initContainerStatuses": [container(terminated={"exitCode": 1})]}, initContainers=[{"name": "a"}]),
        "Init:ExitCode:1",
    ),
    "gated": (
        pod(
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            }
        ),
        "SchedulingGated",
    ),
}


@pytest.mark.parametrize(("found", "reason"), REASONS.values(), ids=REASONS)
def test_the_status_of_a_pod_says_the_most_telling_thing(found, reason):
    """The STATUS column follows kubectl's own rules."""
    assert pod_reason(found) == reason


def test_a_pod_row():
    """Narrow and wide columns of a pod that was restarted five minutes ago."""
    ended = {"terminated": {"finishedAt": rfc3339(NOW - 300)}}
    status = {"containerStatuses": [container(True, 2, running={}) | {"lastState": ended}], "podIP": "10.0.0.1"}
    found = row(PODS, pod(status, nodeName="n1"))
    assert found == {
        "Name": "x",
        "Ready": "1/2",
        "Status": "Running",
        "Restarts": "2 (5m ago)",
        "Age": "60s",
        "IP": "10.0.0.1",
        "Node": "n1",
        "Nominated Node": "<none>",
        "Readiness Gates": "<none>",
    }


def test_a_node_row():
    """Roles come from labels, cordoning shows in the status."""
    labels = {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/a": ""}
    node = {
        "metadata": meta(labels=labels),
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "nodeInfo": {"kubeletVersion": "v1"},
        },
    }
    found = row(NODES, node)
    assert (found["Status"], found["Roles"]) == ("Ready,SchedulingDisabled", "a,control-plane")
    assert (found["Internal-IP"], found["External-IP"], found["Version"]) == ("127.0.0.1", "<none>", "v1")
    assert row(NODES, node | {"status": {}})["Status"] == "Unknown,SchedulingDisabled"


def test_an_event_row():
    """LAST SEEN is the time of the last occurrence, OBJECT the kind in lower case."""
    event = {
        "metadata": meta(),
        "involvedObject": {"kind": "Pod", "name": "p"},
        "lastTimestamp": rfc3339(NOW - 90),
        "reason": "Why",
        "message": "Because.\n",
        "type": "Normal",
        "source": {"component": "me", "host": "n1"},
    }
    found = row(EVENTS, event)
    assert (found["Last Seen"], found["Object"], found["Message"]) == ("90s", "pod/p", "Because.")
    assert (found["Source"], found["Count"]) == ("me, n1", 1)


def test_a_job_row():
    """Completions and duration of a finished job do not go on counting."""
    status = {
        "startTime": rfc3339(NOW - 1000),
        "completionTime": rfc3339(NOW - 910),
        "succeeded": 2,
        "conditions": [{"type": "Complete", "status": "True"}],
    }
    job = {"metadata": meta(), "spec": {"completions": 2, "parallelism": 1}, "status": status}
    found = row(JOBS, job, wide=False)
    assert found == {"Name": "x", "Status": "Complete", "Completions": "2/2", "Duration": "90s", "Age": "60s"}


def test_a_priority_class_row_prints_zero_as_a_value():
    """Zero and false are values, not absence."""
    found = row(PRIORITY_CLASSES, {"metadata": meta(), "value": 0, "preemptionPolicy": "Never"})
    assert (found["Value"], found["Global-Default"]) == (0, False)


OBJECT = {
    "spec": {"a": 1, "b.c": "dotted", "list": [{"x": "1", "t": "A"}, {"x": "2", "t": "B"}]},
    "metadata": {"labels": {"example.com/k": "v"}},
}
PATHS = {
    ".spec.a": 1,
    "spec.a": 1,
    ".spec['b.c']": "dotted",
    ".spec.b\\.c": "dotted",
    ".metadata.labels.example\\.com/k": "v",
    ".spec.list[0].x": "1",
    ".spec.list[-1].x": "2",
    ".spec.list[*].x": "1,2",
    '.spec.list[?(@.t=="B")].x': "2",
    ".spec.none": None,
    ".spec.list[5]": None,
    ".spec[": None,
}


@pytest.mark.parametrize(("path", "value"), PATHS.items())
def test_printer_column_paths(path, value):
    """The JSONPath that definitions use for their columns."""
    assert jsonpath.compile_path(path)(OBJECT) == value


def test_a_table_has_columns_rows_and_the_metadata_kubectl_needs(api):
    """Both narrow and wide columns come at once; each row carries its object's metadata."""
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
    _, table = api.call("GET", "/api/v1/namespaces", accept=accept)
    assert table["kind"] == "Table" and table["metadata"]["resourceVersion"]
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Status", "Age"]
    assert table["rows"][0]["cells"][:2] == ["default", "Active"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    _, whole = api.call("GET", "/api/v1/namespaces/default?includeObject=Object", accept=accept)
    assert whole["rows"][0]["object"]["kind"] == "Namespace"

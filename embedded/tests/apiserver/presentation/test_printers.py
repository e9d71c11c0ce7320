"""What `kubectl get` prints."""

import pytest

from embedded.apiserver.apimachinery import jsonpath
from embedded.apiserver.apimachinery.durations import human_duration
from embedded.apiserver.apimachinery.objects import parse_time, rfc3339
from embedded.apiserver.apimachinery.resource_types import EVENTS, JOBS, NODES, PODS, PRIORITY_CLASSES, SERVICES
from embedded.apiserver.handlers.pod_metrics import NODE_METRICS, POD_METRICS
from embedded.apiserver.presentation.columns import custom_column
from embedded.apiserver.presentation.pod_status import pod_reason
from embedded.apiserver.presentation.printers import columns_of

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


def sidecar(name="s", **state):
    return {"name": name, "ready": True, "started": True, "restartCount": 3, "state": {"running": {}}} | state


ENDED_AT = {"lastState": {"terminated": {"finishedAt": rfc3339(NOW - 30)}}}
SIDECAR = [{"name": "s", "restartPolicy": "Always"}]
PODS_SHOWN = {
    "nothing yet": (pod({"phase": "Pending"}), ("0/2", "Pending", "0")),
    "ready but ended": (
        pod({"containerStatuses": [container(True, terminated={"reason": "Completed"})]}),
        ("0/2", "Completed", "0"),
    ),
    "restarts of init containers count while they are at it": (
        pod({"initContainerStatuses": [container(restarts=4, running={}) | ENDED_AT]}, initContainers=[{"name": "a"}]),
        ("0/2", "Init:0/1", "4 (30s ago)"),
    ),
    "and no longer when they are through": (
        pod(
            {
                "initContainerStatuses": [container(restarts=4, terminated={"exitCode": 0})],
                "containerStatuses": [container(True, 1, running={})],
            },
            initContainers=[{"name": "a"}],
        ),
        ("1/2", "Running", "1"),
    ),
    "a sidecar counts among the containers": (
        pod(
            {"initContainerStatuses": [sidecar()], "containerStatuses": [container(True, running={})]},
            initContainers=SIDECAR,
        ),
        ("2/3", "Running", "3"),
    ),
    "waiting init container": (
        pod({"initContainerStatuses": [container(waiting={"reason": "ErrImagePull"})]}, initContainers=[{"name": "a"}]),
        ("0/2", "Init:ErrImagePull", "0"),
    ),
    "the first of two init containers is through": (
        pod(
            {
                "initContainerStatuses": [
                    container(terminated={"exitCode": 0}),
                    container(waiting={"reason": "PodInitializing"}),
                ]
            },
            initContainers=[{"name": "a"}, {"name": "b"}],
        ),
        ("0/2", "Init:1/2", "0"),
    ),
    "containers wait for init containers that are through": (
        pod(
            {
                "phase": "Pending",
                "initContainerStatuses": [container(terminated={"exitCode": 0})],
                "containerStatuses": [container(waiting={"reason": "PodInitializing"})],
            },
            initContainers=[{"name": "a"}],
        ),
        ("0/2", "PodInitializing", "0"),
    ),
    "one of two is done, the other runs": (
        pod(
            {
                "containerStatuses": [container(terminated={"reason": "Completed"}), container(True, running={})],
                "conditions": [{"type": "Ready", "status": "False"}],
            }
        ),
        ("1/2", "NotReady", "0"),
    ),
    "evicted": (pod({"phase": "Failed", "reason": "Evicted"}), ("0/2", "Evicted", "0")),
    "lost node": (pod({"reason": "NodeLost"}, meta_more=DELETED), ("0/2", "Unknown", "0")),
}


@pytest.mark.parametrize(("found", "expected"), PODS_SHOWN.values(), ids=PODS_SHOWN)
def test_what_a_pod_row_says(found, expected):
    """READY, STATUS and RESTARTS together, as upstream's printPod has them."""
    shown = row(PODS, found)
    assert (shown["Ready"], shown["Status"], shown["Restarts"]) == expected


def test_readiness_gates_are_counted():
    """Met of all."""
    conditions = [{"type": "x/a", "status": "True"}, {"type": "x/b", "status": "False"}]
    gates = [{"conditionType": "x/a"}, {"conditionType": "x/b"}, {"conditionType": "x/c"}]
    assert row(PODS, pod({"conditions": conditions}, readinessGates=gates))["Readiness Gates"] == "1/3"


JOB_STATES = {
    "running": ([], {}, "Running"),
    "complete": (["SuccessCriteriaMet", "Complete"], {}, "Complete"),
    "failed, then deleted": (["FailureTarget", "Failed"], DELETED, "Failed"),
    "deleted": ([], DELETED, "Terminating"),
    "suspended": (["Suspended"], {}, "Suspended"),
    "about to fail": (["FailureTarget"], {}, "FailureTarget"),
}


@pytest.mark.parametrize(("conditions", "more", "expected"), JOB_STATES.values(), ids=JOB_STATES)
def test_the_status_of_a_job(conditions, more, expected):
    """What it ended as, else what it is at."""
    status = {"conditions": [{"type": kind, "status": "True"} for kind in conditions]}
    assert row(JOBS, {"metadata": meta(**more), "spec": {}, "status": status})["Status"] == expected


def test_a_job_row_with_a_selector_of_expressions():
    """Written as the command line takes it."""
    selector = {
        "matchLabels": {"b": "1", "a": "2"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "d", "operator": "DoesNotExist"},
            {"key": "e", "operator": "Exists"},
        ],
    }
    job = {"metadata": meta(), "spec": {"parallelism": 3, "selector": selector}, "status": {"succeeded": 1}}
    shown = row(JOBS, job)
    assert (shown["Selector"], shown["Completions"], shown["Duration"]) == ("a=2,b=1,c in (x,y),!d,e", "1/1 of 3", "")


def test_a_service_row():
    """Ports with their node ports and protocols."""
    ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]
    spec = {"type": "ClusterIP", "clusterIP": "10.0.0.9", "ports": ports, "selector": {"app": "x"}}
    shown = row(SERVICES, {"metadata": meta(), "spec": spec})
    assert list(shown.values())[1:] == ["ClusterIP", "10.0.0.9", "<none>", "80/TCP,53:30053/UDP", "60s", "app=x"]


def test_a_series_of_events_shows_its_last_moment_and_count():
    """The newer form of repeated events."""
    event = {
        "metadata": meta(),
        "series": {"count": 7, "lastObservedTime": rfc3339(NOW - 5)},
        "eventTime": rfc3339(NOW - 50),
    }
    shown = row(EVENTS, event | {"reportingComponent": "me", "reportingInstance": "me-1"})
    assert (shown["Last Seen"], shown["First Seen"], shown["Count"], shown["Source"]) == ("5s", "50s", 7, "me, me-1")


METRIC_CELLS = {"CPU": "1500000n", "Memory": "3Ki", "Window": "10s"}


def test_a_metrics_row_adds_up_its_containers():
    """In the units in which metrics-server reports."""
    containers = [{"usage": {"cpu": "1m", "memory": "1Ki"}}, {"usage": {"cpu": "500u", "memory": "2Ki"}}]
    shown = row(POD_METRICS, {"metadata": meta(), "window": "10s", "containers": containers})
    assert shown == {"Name": "x"} | METRIC_CELLS
    usage = {"cpu": "1500u", "memory": "3072"}
    assert row(NODE_METRICS, {"metadata": meta(), "window": "10s", "usage": usage}) == {"Name": "x"} | METRIC_CELLS


VALUES = {
    "integer": [(3, 3), (3.9, 3), ("3", None), (True, None)],
    "number": [(1.5, 1.5), ("x", None)],
    "boolean": [(False, False), ("true", None)],
    "string": [("x", "x"), (5, "5"), (True, "true"), ({"a": 1}, '{"a":1}')],
    "date": [(rfc3339(NOW - 90), "90s"), ("yesterday", "<invalid>"), (5, None)],
}


@pytest.mark.parametrize(("kind", "value", "cell"), [(k, *case) for k, cases in VALUES.items() for case in cases])
def test_custom_columns_show_values_of_their_type(kind, value, cell):
    """What is not of the column's type is an empty cell, what is absent too."""
    column = custom_column("C", kind, ".spec.v", 0, "")
    assert column.cell({"spec": {"v": value}}, NOW) == cell
    assert column.cell({"spec": {}}, NOW) is None


OBJECT = {
    "spec": {"a": 1, "b.c": "dotted", "list": [{"x": "1", "t": "A"}, {"x": "2", "t": "B", "n": 2}]},
    "metadata": {"labels": {"example.com/k": "v"}},
}
PATHS = {
    ".spec.a": [1],
    "spec.a": [1],
    ".spec['b.c']": ["dotted"],
    ".spec.b\\.c": ["dotted"],
    ".metadata.labels.example\\.com/k": ["v"],
    ".spec.list[0].x": ["1"],
    ".spec.list[-1].x": ["2"],
    ".spec.list[0:1].x": ["1"],
    ".spec.list[*].x": ["1", "2"],
    "..x": ["1", "2"],
    '.spec.list[?(@.t=="B")].x': ["2"],
    ".spec.list[?(@.t!='B')].x": ["1"],
    ".spec.list[?(@.n>1)].x": ["2"],
    ".spec.list[?(@.n)].x": ["2"],
    ".spec.none": [],
    ".spec.list[5]": [],
    ".spec[": [],
}


@pytest.mark.parametrize(("path", "value"), PATHS.items())
def test_printer_column_paths(path, value):
    """The JSONPath that definitions use for their columns."""
    assert jsonpath.find(path, OBJECT) == value


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

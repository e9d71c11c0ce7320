"""kubectl's commands that show something."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, JOBS, NODES, PODS, Resource, config_map

_AGE = re.compile(r"^(\d+[smhd])+$")


@contextmanager
def _meanwhile(act: Callable[[], Any]) -> Iterator[None]:
    """`act` a moment later in a thread of its own, which has ended when the case goes on: both use `t.raw`."""
    timer = threading.Timer(0.3, act)
    timer.start()
    try:
        yield
    finally:
        timer.join()


def _table(t: Case, *arguments: str) -> list[list[str]]:
    """What `get` prints, split at two or more spaces as its columns are."""
    return [re.split(r"\s{2,}", line.strip()) for line in t.kubectl("get", *arguments).out.splitlines()]


_COLUMNS: tuple[tuple[str, Resource, list[str], str], ...] = (
    ("pods", PODS, ["NAME", "READY", "STATUS", "RESTARTS", "AGE"], "IP NODE NOMINATED_NODE READINESS_GATES"),
    ("configmaps", CONFIG_MAPS, ["NAME", "DATA", "AGE"], ""),
    ("secrets", r.SECRETS, ["NAME", "TYPE", "DATA", "AGE"], ""),
    ("services", r.SERVICES, ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"], "SELECTOR"),
    ("jobs", JOBS, ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"], "CONTAINERS IMAGES SELECTOR"),
    (
        "cronjobs",
        r.CRON_JOBS,
        ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST SCHEDULE", "AGE"],
        "CONTAINERS IMAGES SELECTOR",
    ),
    ("poddisruptionbudgets", r.BUDGETS, ["NAME", "MIN AVAILABLE", "MAX UNAVAILABLE", "ALLOWED DISRUPTIONS", "AGE"], ""),
    ("leases", r.LEASES, ["NAME", "HOLDER", "AGE"], ""),
    ("events", r.EVENTS, ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"], "SUBOBJECT SOURCE"),
)
_SAMPLES = {
    "pods": lambda ns: r.pod("x"),
    "configmaps": lambda ns: config_map("x"),
    "secrets": lambda ns: r.SECRETS.object("x", data={"a": "MQ=="}),
    "services": lambda ns: r.service("x", clusterIP="None"),
    "jobs": lambda ns: r.job("x", suspend=True),
    "cronjobs": lambda ns: r.cron_job("x"),
    "poddisruptionbudgets": lambda ns: r.budget("x", "none", minAvailable=1),
    "leases": lambda ns: r.lease("x"),
    "events": lambda ns: r.event("x", ns),
}


def _enter(plural: str, resource: Resource, columns: list[str], wide: str) -> None:
    @behaviour(pages.kubectl("get"), Via.KUBECTL, name=f"kubectl shows the usual columns of {plural}")
    def shown(t: Case) -> None:
        t.given(resource, _SAMPLES[plural](t.ns))
        assert _table(t, resource.argument)[0] == columns
        if wide:
            found = _table(t, resource.argument, "-owide")[0]
            assert set(wide.replace("_", " ").split()) <= set(" ".join(found).split())


for _row in _COLUMNS:
    _enter(*_row)


@behaviour(pages.kubectl("get"), Via.KUBECTL, Via.ALL)
def kubectl_shows_a_pod_in_a_row(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    row = _table(t, "pods")[1]
    assert row[:4] == ["p", "0/1", "Pending", "0"] and _AGE.match(row[4])


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_shows_where_a_pod_is_and_is_going(t: Case) -> None:
    node = t.node()
    t.given(PODS, r.pod("p", readinessGates=[{"conditionType": "example.com/gate"}]))
    t.given(PODS, r.pod("there", nodeName=node))
    t.defer(lambda: t.raw.delete(PODS, t.ns, "there", grace=0))
    t.change(PODS, "p", {"status": {"nominatedNodeName": node}}, "status")
    rows = {row[0]: row for row in _table(t, "pods", "-owide")}
    assert rows["p"][5:] == ["<none>", "<none>", node, "0/1"]
    assert rows["there"][5:] == ["<none>", node, "<none>", "<none>"]


@behaviour(pages.POD_LIFECYCLE, Via.KUBECTL)
def kubectl_shows_why_a_container_waits(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    status = {"name": "main", "image": "a", "imageID": "", "ready": False, "restartCount": 3, "state": waiting}
    t.change(PODS, "p", {"status": {"phase": "Running", "containerStatuses": [status]}}, "status")
    assert _table(t, "pods", "p")[1][2:4] == ["CrashLoopBackOff", "3"]


@behaviour(pages.POD_LIFECYCLE + "#pod-termination", Via.KUBECTL)
def kubectl_shows_a_pod_as_terminating(t: Case) -> None:
    t.given(PODS, r.pod("p", nodeName=t.node()))
    t.defer(lambda: t.raw.delete(PODS, t.ns, "p", grace=0))
    t.raw.delete(PODS, t.ns, "p")
    assert _table(t, "pods", "p")[1][2] == "Terminating"


@behaviour(pages.NODE, Via.KUBECTL)
def kubectl_shows_a_node_with_status_and_roles(t: Case) -> None:
    name = t.node(unschedulable=True)
    t.change(NODES, name, {"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}})
    ready = {"type": "Ready", "status": "True"}
    info = {"kubeletVersion": "v1.2.3"}
    t.change(NODES, name, {"status": {"conditions": [ready], "nodeInfo": info}}, "status")
    rows = _table(t, "node", name)
    assert rows[0] == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert rows[1][:3] == [name, "Ready,SchedulingDisabled", "worker"] and rows[1][4] == "v1.2.3"


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_prints_in_many_formats(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"app": "web"}))
    get = ("get", "configmap", "m")
    assert t.kubectl(*get, "-oname").out == "configmap/m\n"
    assert t.kubectl(*get, "-ojsonpath={.data.key}").out == "value"
    assert t.kubectl(*get, "-ogo-template={{.metadata.name}}").out == "m"
    assert t.kubectl(*get, "-ocustom-columns=N:.metadata.name,K:.data.key").out.split() == ["N", "K", "m", "value"]
    assert "kind: ConfigMap" in t.kubectl(*get, "-oyaml").out


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_shows_labels_as_columns(t: Case) -> None:
    t.given(CONFIG_MAPS, config_map("m", {"app": "web"}))
    assert _table(t, "configmap", "m", "--show-labels")[1][-1] == "app=web"
    assert _table(t, "configmap", "m", "-Lapp")[1][-1] == "web"


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_sorts_by_a_field(t: Case) -> None:
    for name, value in (("a", "3"), ("b", "1"), ("c", "2")):
        t.given(CONFIG_MAPS, config_map(name, {"of": "list"}, rank=value))
    out = t.kubectl("get", "configmaps", "-lof=list", "--sort-by=.data.rank", "-oname").out
    assert out.split() == ["configmap/b", "configmap/c", "configmap/a"]


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_says_when_there_is_nothing(t: Case) -> None:
    done = t.kubectl("get", "pods")
    assert done.out == "" and done.err == f"No resources found in {t.ns} namespace.\n"


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_gets_the_category_all(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    t.given(JOBS, r.job("j", suspend=True))
    assert {"pod/p", "job.batch/j"} <= set(t.kubectl("get", "all", "-oname").out.split())


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_reads_in_chunks(t: Case) -> None:
    for name in "abc":
        t.given(r.LEASES, r.lease(name))
    assert len(t.kubectl("get", "leases", "--chunk-size=1", "-oname").out.split()) == 3


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_does_not_know_an_unknown_type(t: Case) -> None:
    assert "the server doesn't have a resource type" in t.kubectl("get", "nosuchthings", code=1).err


@behaviour(pages.kubectl("get"), Via.KUBECTL)
def kubectl_shows_managed_fields_only_when_asked(t: Case) -> None:
    t.raw.apply(CONFIG_MAPS, t.ns, config_map("m"), "alice")
    assert "managedFields" not in t.kubectl("get", "configmap", "m", "-oyaml").out
    assert "manager: alice" in t.kubectl("get", "configmap", "m", "-oyaml", "--show-managed-fields").out


@behaviour(pages.kubectl("describe"), Via.KUBECTL, Via.ALL)
def kubectl_describes_a_pod_with_its_events(t: Case) -> None:
    uid = t.given(PODS, r.pod("p"))["metadata"]["uid"]
    event = r.event("e", t.ns, "p")
    event["involvedObject"]["uid"] = uid
    t.given(r.EVENTS, event | {"source": {"component": "list"}})
    out = t.kubectl("describe", "pod", "p").out
    assert re.search(r"^Name: +p$", out, re.M) and re.search(r"^QoS Class: +BestEffort$", out, re.M)
    assert "Tested" in out and "as the list does" in out


@behaviour(pages.kubectl("describe"), Via.KUBECTL)
def kubectl_describes_a_node_with_what_runs_there(t: Case) -> None:
    name = t.node()
    t.given(PODS, r.pod("p", nodeName=name, containers=[r.container(resources={"limits": {"cpu": "2"}})]))
    t.defer(lambda: t.raw.delete(PODS, t.ns, "p", grace=0))
    out = t.kubectl("describe", "node", name).out
    assert re.search(rf"{t.ns} +p +2 \(50%\)", out) and "Allocated resources:" in out


@behaviour(pages.kubectl("describe"), Via.KUBECTL)
def kubectl_describes_jobs_namespaces_and_secrets(t: Case) -> None:
    t.given(JOBS, r.job("j", suspend=True))
    t.given(r.SECRETS, r.SECRETS.object("s", data={"a": "MQ=="}))
    assert re.search(r"^Parallelism: +1$", t.kubectl("describe", "job", "j").out, re.M)
    assert re.search(r"^Status: +Active$", t.kubectl("describe", "namespace", t.ns).out, re.M)
    assert "a:  1 bytes" in t.kubectl("describe", "secret", "s").out


@behaviour(pages.kubectl("explain"), Via.KUBECTL, Via.ALL)
def kubectl_explains_a_type_and_its_fields(t: Case) -> None:
    out = t.kubectl("explain", "pod").out
    assert re.search(r"^KIND: +Pod$", out, re.M) and "spec\t<PodSpec>" in out
    out = t.kubectl("explain", "job.spec.completions").out
    assert "<integer>" in out and "successfully finished pods" in out


@behaviour(pages.kubectl("explain"), Via.KUBECTL)
def kubectl_explains_all_fields_below_one(t: Case) -> None:
    out = t.kubectl("explain", "pod.spec.containers", "--recursive").out
    assert all(word in out for word in ("image\t<string>", "livenessProbe\t<Probe>", "httpGet\t<HTTPGetAction>"))


@behaviour(pages.kubectl("explain"), Via.KUBECTL)
def kubectl_says_which_field_does_not_exist(t: Case) -> None:
    assert 'field "nosuch" does not exist' in t.kubectl("explain", "pod.spec.nosuch", code=1).err


@behaviour(pages.kubectl("wait"), Via.KUBECTL, Via.ALL)
def kubectl_waits_for_a_condition(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    with _meanwhile(lambda: t.change(PODS, "p", ready, "status")):
        assert t.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=30s").out == "pod/p condition met\n"


@behaviour(pages.kubectl("wait"), Via.KUBECTL)
def kubectl_waits_for_a_value_and_for_deletion(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    out = t.kubectl("wait", "--for=jsonpath={.status.phase}=Pending", "pod/p", "--timeout=30s").out
    assert out == "pod/p condition met\n"
    with _meanwhile(lambda: t.raw.delete(PODS, t.ns, "p")):
        assert t.kubectl("wait", "--for=delete", "pod/p", "--timeout=30s").out in ("pod/p condition met\n", "")


@behaviour(pages.kubectl("wait"), Via.KUBECTL)
def kubectl_stops_waiting_in_time(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    done = t.kubectl("wait", "--for=condition=Ready", "pod/p", "--timeout=1s", code=1)
    assert "timed out waiting for the condition" in done.err


@behaviour(pages.kubectl("events"), Via.KUBECTL)
def kubectl_shows_the_events_of_one_object(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    t.given(r.EVENTS, r.event("e", t.ns, "p") | {"lastTimestamp": "2026-01-02T03:04:05Z"})
    t.given(r.EVENTS, r.event("f", t.ns, "other"))
    out = t.kubectl("events", "--for=pod/p").out.splitlines()
    assert out[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert len(out) == 2 and "pod/p" in out[1].lower() and "as the list does" in out[1]


@behaviour(pages.kubectl("logs"), Via.KUBECTL)
def kubectl_says_why_there_is_no_log(t: Case) -> None:
    t.given(PODS, r.pod("p"))
    assert "container none is not valid for pod p" in t.kubectl("logs", "p", "-c", "none", code=1).err
    assert 'pods "absent" not found' in t.kubectl("logs", "absent", code=1).err


@behaviour(pages.kubectl("top node"), Via.KUBECTL, needs="metrics.k8s.io")
def kubectl_top_knows_the_metrics_api(t: Case) -> None:
    done = t.kubectl("top", "pods", code=None)
    assert f"No resources found in {t.ns} namespace." in done.err and "not available" not in done.err


@behaviour(pages.kubectl("auth can-i"), Via.KUBECTL)
def kubectl_asks_for_permission_of_any_type(t: Case) -> None:
    for verb, resource in (("create", "jobs.batch"), ("patch", "nodes"), ("update", "pods/status")):
        kind, _, sub = resource.partition("/")
        flags = [f"--subresource={sub}"] if sub else []
        assert t.kubectl("auth", "can-i", verb, kind, *flags).out.strip() == "yes"

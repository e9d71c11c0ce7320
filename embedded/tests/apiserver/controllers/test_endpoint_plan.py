"""What EndpointSlices and Endpoints say of a Service's pods."""

import msgspec
import pytest

from embedded.apiserver.controllers.endpoint_plan import endpoints_of, plan_slices
from embedded.apiserver.workloads.pods import WorkloadPod
from embedded.tests.apiserver.workload_objects import LONG_AGO, service


def pod(name, address="127.64.0.1", ready=True, deleting=False, phase="Running", port=8080, **spec):
    meta = {"name": name, "uid": name} | ({"deletionTimestamp": LONG_AGO} if deleting else {})
    status = {"phase": phase, "podIP": address}
    status["conditions"] = [{"type": "Ready", "status": str(ready), "lastTransitionTime": LONG_AGO}]
    ports = [{"name": "http", "containerPort": port, "protocol": "TCP"}]
    whole = {"nodeName": "n", "containers": [{"name": "c", "ports": ports}]} | spec
    return msgspec.convert({"metadata": meta, "spec": whole, "status": status}, WorkloadPod)


def of(**spec):
    found = service(ports=[{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}], **spec)
    found["metadata"]["namespace"] = "default"
    return found


STATES = {
    "ready": (pod("a"), {}, (True, True, False)),
    "not ready": (pod("a", ready=False), {}, (False, False, False)),
    "terminating, still serving": (pod("a", deleting=True), {}, (False, True, True)),
    "told of all the same": (pod("a", ready=False), {"publishNotReadyAddresses": True}, (True, False, False)),
}


@pytest.mark.parametrize(("found", "spec", "expected"), STATES.values(), ids=STATES)
def test_the_state_of_an_endpoint(found, spec, expected):
    """ready, serving, terminating."""
    ((endpoint,),) = [each["endpoints"] for each in plan_slices(of(**spec), [found], []).create]
    assert tuple(endpoint["conditions"].values()) == expected
    assert (
        endpoint["addresses"] == ["127.64.0.1"] and endpoint["targetRef"]["name"] == "a" and endpoint["nodeName"] == "n"
    )


ABSENT = {
    "it has no address": pod("a", address=""),
    "it ended": pod("a", phase="Succeeded"),
    "no node runs it": pod("a", nodeName=""),
    "its address is the machine's own": pod("a", address="127.0.0.1"),
}


@pytest.mark.parametrize("found", ABSENT.values(), ids=ABSENT)
def test_who_is_no_endpoint(found):
    """The Service has an empty slice then, and empty Endpoints."""
    (made,) = plan_slices(of(), [found], []).create
    assert made["endpoints"] == [] and endpoints_of(of(), [found])["subsets"] == []


def test_a_named_port_is_what_each_pod_calls_so():
    """Pods that differ in it are in different slices; one that does not know it is reached nowhere."""
    unknown = pod("c", containers=[])
    made = plan_slices(of(), [pod("a"), pod("b", port=9090), unknown], []).create
    assert [([port["port"] for port in each["ports"]], each["endpoints"][0]["targetRef"]["name"]) for each in made] == [
        ([8080], "a"),
        ([9090], "b"),
        ([], "c"),
    ]


def test_slices_hold_a_hundred_and_are_used_on():
    """A change of one pod changes one slice."""
    many = [pod(f"p{number:03}") for number in range(150)]
    made = plan_slices(of(), many, []).create
    assert [len(each["endpoints"]) for each in made] == [100, 50]
    held = [each | {"metadata": each["metadata"] | {"name": f"web-{number}"}} for number, each in enumerate(made)]
    plan = plan_slices(of(), [*many[:149], pod("p149", ready=False)], held)
    assert (plan.create, [each["metadata"]["name"] for each in plan.change], plan.delete) == ((), ["web-1"], ())
    assert plan_slices(of(), many[:100], held).delete == ("web-1",)


def test_endpoints_keep_those_that_are_not_ready_apart():
    """A terminating pod is in neither list."""
    pods = [pod("a"), pod("b", "127.64.0.2", ready=False), pod("c", "127.64.0.3", deleting=True)]
    (subset,) = endpoints_of(of(), pods)["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == ["127.64.0.1"]
    assert [each["ip"] for each in subset["notReadyAddresses"]] == ["127.64.0.2"]
    assert subset["ports"] == [{"name": "web", "protocol": "TCP", "port": 8080}]


def test_a_headless_service_names_its_pods():
    """By hostname and subdomain."""
    named = pod("a", hostname="first", subdomain="web")
    (made,) = plan_slices(of(clusterIP="None"), [named], []).create
    assert (
        made["endpoints"][0]["hostname"] == "first" and "service.kubernetes.io/headless" in made["metadata"]["labels"]
    )

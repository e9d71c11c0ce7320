"""Services, and where the pods behind them are."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES, Object, container


def _service(name: str = "s", **spec: Any) -> Object:
    ports = [{"name": "web", "port": 80, "targetPort": "http"}]
    return SERVICES.object(name, spec={"selector": {"app": "s"}, "ports": ports} | spec)


def _pod(t: Case, name: str, address: str, ready: bool = True) -> None:
    """A pod as its node tells of it: one that no node runs is no endpoint."""
    ports = [{"name": "http", "containerPort": 8080}]
    t.given(PODS, r.pod(name, {"app": "s"}, containers=[container(ports=ports)], nodeName=t.node()))
    t.defer(lambda: t.raw.delete(PODS, t.ns, name, grace=0))
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    addresses = {"podIP": address, "podIPs": [{"ip": address}]}
    t.change(PODS, name, {"status": {"phase": "Running", "conditions": [condition], **addresses}}, "status")


def _ready(t: Case) -> list[str]:
    slices = t.raw.list(ENDPOINT_SLICES, t.ns, "kubernetes.io/service-name=s")
    endpoints = [each for found in slices for each in found.get("endpoints") or ()]
    return sorted(each["addresses"][0] for each in endpoints if each["conditions"]["ready"])


@behaviour(pages.SERVICE + "#type-clusterip", fast=Via.ALL)
def a_service_gets_an_address_of_its_own(t: Case) -> None:
    first, second = (t.create(SERVICES, _service(name))["spec"] for name in ("s", "other"))
    assert first["clusterIP"] and first["clusterIPs"] == [first["clusterIP"]] != second["clusterIPs"]
    assert (first["type"], first["sessionAffinity"], first["ipFamilyPolicy"]) == ("ClusterIP", "None", "SingleStack")
    assert first["ports"][0]["protocol"] == "TCP"


@behaviour(pages.SERVICE + "#headless-services")
def a_headless_service_has_none(t: Case) -> None:
    spec = t.create(SERVICES, _service(clusterIP="None"))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


@behaviour(pages.SERVICE + "#choosing-your-own-ip-address")
def the_address_of_a_service_stays(t: Case) -> None:
    held = t.given(SERVICES, _service())["spec"]["clusterIP"]
    other = held.rpartition(".")[0] + (".9" if not held.endswith(".9") else ".8")
    with t.refused("Invalid", "spec.clusterIPs[0]", "may not change once set"):
        t.patch(SERVICES, "s", "merge", {"spec": {"clusterIP": other}})


@behaviour(pages.SERVICE + "#choosing-your-own-ip-address", Via.CODE)
def an_address_belongs_to_one_service(t: Case) -> None:
    held = t.given(SERVICES, _service())["spec"]["clusterIP"]
    with t.refused("Invalid", "spec.clusterIPs", "provided IP is already allocated"):
        t.create(SERVICES, _service("other", clusterIP=held))


@behaviour(pages.SERVICE, fast=Via.RAW, needs="controllers")
def pods_that_are_ready_are_behind_a_service(t: Case) -> None:
    t.create(SERVICES, _service())
    _pod(t, "one", "10.11.12.13")
    _pod(t, "two", "10.11.12.14", ready=False)
    t.eventually(lambda: _ready(t) == ["10.11.12.13"], "the ready pod")
    (found,) = t.raw.list(ENDPOINT_SLICES, t.ns, "kubernetes.io/service-name=s")
    assert found["ports"] == [{"name": "web", "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"

    def subset() -> Object | None:
        subsets = t.now(ENDPOINTS, "s").get("subsets") or [{}]
        found: Object = subsets[0]
        return found if found.get("notReadyAddresses") and found.get("addresses") else None

    both: Object = t.eventually(subset, "both addresses")
    assert [each["ip"] for each in both["addresses"]] == ["10.11.12.13"]
    assert [each["ip"] for each in both["notReadyAddresses"]] == ["10.11.12.14"]


@behaviour(pages.ENDPOINT_SLICES + "#conditions", Via.RAW, needs="controllers")
def a_service_may_publish_pods_that_are_not_ready(t: Case) -> None:
    t.create(SERVICES, _service(publishNotReadyAddresses=True))
    _pod(t, "one", "10.11.12.13", ready=False)
    t.eventually(lambda: _ready(t) == ["10.11.12.13"], "the pod all the same")


@behaviour(pages.ENDPOINT_SLICES + "#ownership", Via.RAW, needs="controllers")
def the_slices_of_a_service_go_with_it(t: Case) -> None:
    t.create(SERVICES, _service())
    t.eventually(lambda: t.raw.list(ENDPOINT_SLICES, t.ns, "kubernetes.io/service-name=s"), "a slice")
    t.delete(SERVICES, "s")
    t.eventually(lambda: not t.raw.list(ENDPOINT_SLICES, t.ns, "kubernetes.io/service-name=s"), "no slice")
    t.gone(ENDPOINTS, "s")


@behaviour(pages.ENDPOINT_SLICES + "#address-types")
def the_address_type_of_a_slice_stays(t: Case) -> None:
    t.given(ENDPOINT_SLICES, ENDPOINT_SLICES.object("e", addressType="IPv4", endpoints=[]))
    with t.refused("Invalid", "addressType"):
        t.patch(ENDPOINT_SLICES, "e", "merge", {"addressType": "IPv6"})


@behaviour(pages.kubectl("expose"), Via.KUBECTL, Via.ALL, needs="controllers")
def kubectl_exposes_a_deployment(t: Case) -> None:
    t.given(r.DEPLOYMENTS, r.workload(r.DEPLOYMENTS, "w", replicas=0))
    assert t.kubectl("expose", "deployment", "w", "--port=80", "--target-port=8080").out == "service/w exposed\n"
    spec = t.now(SERVICES, "w")["spec"]
    assert spec["selector"] == {"app": "w"} and spec["ports"][0]["targetPort"] == 8080
    assert spec["clusterIP"] in t.kubectl("get", "service", "w").out


_REFUSED: tuple[tuple[str, Object, str], ...] = (
    ("an external address is one", {"externalIPs": ["x"]}, "spec.externalIPs[0]"),
    ("a traffic policy is known", {"internalTrafficPolicy": "x"}, "spec.internalTrafficPolicy"),
    (
        "only what is reached from outside has a policy for it",
        {"externalTrafficPolicy": "Local"},
        "externally-accessible",
    ),
    ("a node port is in their range", {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]}, "valid range"),
    (
        "only a load balancer has source ranges",
        {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
        "LoadBalancerSourceRanges",
    ),
)


def _enter(title: str, spec: Object, words: str) -> None:
    @behaviour(pages.SERVICE, Via.CODE, name=title)
    def refused(t: Case) -> None:
        with t.refused("Invalid", words):
            t.create(SERVICES, _service(**spec))


for _row in _REFUSED:
    _enter(*_row)


@behaviour(pages.SERVICE + "#type-nodeport", fast=Via.ALL)
def a_service_of_nodes_has_a_port_of_them(t: Case) -> None:
    spec = t.create(SERVICES, _service(type="NodePort"))["spec"]
    assert 30000 <= spec["ports"][0]["nodePort"] <= 32767 and spec["externalTrafficPolicy"] == "Cluster"
    other = _service("other", type="NodePort", ports=[{"port": 80, "nodePort": spec["ports"][0]["nodePort"]}])
    with t.refused("Invalid", "provided port is already allocated"):
        t.create(SERVICES, other)


@behaviour(pages.SERVICE + "#type-nodeport", Via.CODE)
def its_ports_go_when_it_is_no_longer_one(t: Case) -> None:
    t.given(SERVICES, _service(type="NodePort"))
    spec = t.patch(SERVICES, "s", "merge", {"spec": {"type": "ClusterIP"}})["spec"]
    assert "nodePort" not in spec["ports"][0] and "externalTrafficPolicy" not in spec


@behaviour(pages.ENDPOINT_SLICES + "#address-types", Via.CODE)
def an_endpoint_is_not_the_machine_itself(t: Case) -> None:
    own = ENDPOINT_SLICES.object("e", addressType="IPv4", endpoints=[{"addresses": ["127.0.0.1"]}])
    with t.refused("Invalid", "may not be in the loopback range"):
        t.create(ENDPOINT_SLICES, own)

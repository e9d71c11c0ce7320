"""Where the pods behind a Service are reached, in the form of EndpointSlices and of Endpoints.

https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of
from embedded.apiserver.reconciling.template_hash import with_entry
from embedded.apiserver.registry.service_addresses import HEADLESS
from embedded.apiserver.validation.endpoints import is_reachable
from embedded.apiserver.workloads.pods import WorkloadPod

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
CONTROLLER = "endpointslice-controller.k8s.io"
_OF_ENDPOINTS = ("endpoints.kubernetes.io/managed-by", "endpoint-controller")
_HEADLESS_LABEL = "service.kubernetes.io/headless"
_MOST_IN_A_SLICE = 100

Ports = tuple[tuple[str, str, int, str], ...]  # name, protocol, number, application protocol


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """EndpointSlices to create, to bring to another state (by name), and to delete."""

    create: tuple[Object, ...] = ()
    change: tuple[Object, ...] = ()
    delete: tuple[str, ...] = ()


def plan_slices(service: Object, pods: Iterable[WorkloadPod], held: Sequence[Object]) -> SlicePlan:
    """Pods that listen on the same ports share slices; a slice that is there is used on."""
    free = sorted(held, key=name_of)
    create, change = [], []
    for ports, endpoints in _groups(service, pods).items():
        for start in range(0, max(len(endpoints), 1), _MOST_IN_A_SLICE):
            wanted = _slice(service, ports, endpoints[start : start + _MOST_IN_A_SLICE])
            found = next((each for each in free if (each.get("ports") or []) == wanted["ports"]), None)
            if found is None:
                create.append(wanted)
                continue
            free.remove(found)
            fresh = _merged(found, wanted)
            if fresh != found:
                change.append(fresh)
    return SlicePlan(tuple(create), tuple(change), tuple(name_of(each) for each in free))


def _groups(service: Object, pods: Iterable[WorkloadPod]) -> dict[Ports, list[Object]]:
    """Endpoints by what their pods listen on; a Service without pods has one empty slice."""
    found: dict[Ports, list[Object]] = {}
    for pod in _reachable(pods):
        found.setdefault(_ports_of(service, pod), []).append(_endpoint(service, pod))
    return found or {(): []}


def _reachable(pods: Iterable[WorkloadPod]) -> list[WorkloadPod]:
    """Those that a node runs, at an address that is not the machine's own."""
    found = (pod for pod in pods if pod.node and not pod.ended and is_reachable(pod.status.pod_ip))
    return sorted(found, key=lambda pod: pod.name)


def _ports_of(service: Object, pod: WorkloadPod) -> Ports:
    """A port whose name the pod does not know leads nowhere in it."""
    found = []
    for port in service["spec"].get("ports") or ():
        target, protocol = port["targetPort"], port["protocol"]
        number = target if isinstance(target, int) else pod.port_number(target, protocol)
        if number is not None:
            found.append((port.get("name") or "", protocol, number, port.get("appProtocol") or ""))
    return tuple(found)


def _endpoint(service: Object, pod: WorkloadPod) -> Object:
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (pod.ready and not pod.deleting)
    endpoint: Object = {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": pod.ready, "terminating": pod.deleting},
        "targetRef": _target(service, pod),
    }
    if pod.node:
        endpoint["nodeName"] = pod.node
    if _is_named(service, pod):
        endpoint["hostname"] = pod.spec.hostname
    return endpoint


def _target(service: Object, pod: WorkloadPod) -> Object:
    return {"kind": "Pod", "namespace": namespace_of(service), "name": pod.name, "uid": pod.uid}


def _is_named(service: Object, pod: WorkloadPod) -> bool:
    return bool(pod.spec.hostname and pod.spec.subdomain == name_of(service))


def _slice(service: Object, ports: Ports, endpoints: list[Object]) -> Object:
    labels = _labels(service, (MANAGED_BY, CONTROLLER))
    return {
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": with_entry(labels, SERVICE_NAME, name_of(service)),
        },
        "addressType": "IPv4",
        "ports": [_slice_port(port) for port in ports],
        "endpoints": endpoints,
    }


def _labels(service: Object, manager: tuple[str, str]) -> dict[str, str]:
    labels = with_entry(dig(service, "metadata.labels"), *manager)
    return with_entry(labels, _HEADLESS_LABEL, "") if service["spec"].get("clusterIP") == HEADLESS else labels


def _slice_port(port: tuple[str, str, int, str]) -> Object:
    name, protocol, number, application = port
    found = {"name": name, "protocol": protocol, "port": number}
    return {**found, "appProtocol": application} if application else found


def _merged(held: Object, wanted: Object) -> Object:
    meta = {**held["metadata"], "labels": wanted["metadata"]["labels"]}
    return {**held, "metadata": meta, "endpoints": wanted["endpoints"], "ports": wanted["ports"]}


# -- Endpoints -------------------------------------------------------------------------------------------------


def endpoints_of(service: Object, pods: Iterable[WorkloadPod]) -> Object:
    """The older form: one object of the Service's name, whose subsets keep pods that are not ready apart."""
    subsets: dict[Ports, Object] = {}
    for pod in _reachable(pods):
        subset = subsets.setdefault(_ports_of(service, pod), {})
        ready = _endpoint(service, pod)["conditions"]["ready"]
        if ready or not pod.deleting:
            subset.setdefault("addresses" if ready else "notReadyAddresses", []).append(_address(service, pod))
    meta = {"name": name_of(service), "namespace": namespace_of(service), "labels": _labels(service, _OF_ENDPOINTS)}
    found = [{**subset, **_named_ports(ports)} for ports, subset in sorted(subsets.items()) if subset]
    return {"metadata": meta, "subsets": found}


def _address(service: Object, pod: WorkloadPod) -> Object:
    found: Object = {"ip": pod.status.pod_ip, "targetRef": _target(service, pod)}
    if pod.node:
        found["nodeName"] = pod.node
    if _is_named(service, pod):
        found["hostname"] = pod.spec.hostname
    return found


def _named_ports(ports: Ports) -> Object:
    """Here a port without a name has none, where a slice's has an empty one."""
    told = [{key: value for key, value in _slice_port(port).items() if value != ""} for port in ports]
    return {"ports": told} if told else {}

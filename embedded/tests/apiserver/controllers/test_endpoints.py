"""Services: their addresses, and what is made of them, through the API."""

import pytest

from embedded.apiserver.registry.service_addresses import SERVICE_RANGE
from embedded.tests.apiserver.workload_objects import (
    ENDPOINTS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    SLICES,
    serve,
    service,
    workload,
)


def slices(api):
    """service → addresses that are ready."""
    found = {}
    for each in api.get(SLICES)["items"]:
        ready = [e["addresses"][0] for e in each.get("endpoints", ()) if e["conditions"]["ready"]]
        found.setdefault(each["metadata"]["labels"]["kubernetes.io/service-name"], []).extend(ready)
    return found


def test_pods_that_serve_are_behind_the_service(api):
    """They come and go with their readiness; the slices go with the Service, and so do the Endpoints."""
    api.post(SERVICES, service())
    api.post(REPLICA_SETS, workload(replicas=2))
    api.settle()
    assert slices(api) == {"web": []}
    serve(api)
    assert slices(api) == {"web": []}, "no node runs them"
    api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    for each in api.get(PODS)["items"]:
        binding = {"metadata": {"name": each["metadata"]["name"]}, "target": {"kind": "Node", "name": "n"}}
        api.post(f"{PODS}/{each['metadata']['name']}/binding", binding)
    api.settle()
    assert slices(api) == {"web": ["127.64.0.1", "127.64.0.2"]}
    (subset,) = api.get(f"{ENDPOINTS}/web")["subsets"]
    assert [each["ip"] for each in subset["addresses"]] == ["127.64.0.1", "127.64.0.2"]
    name = api.get(PODS)["items"][0]["metadata"]["name"]
    api.patch(f"{PODS}/{name}", {"metadata": {"labels": {"app": "other"}}})
    api.settle()
    assert slices(api) == {"web": ["127.64.0.2"]}
    api.call("DELETE", f"{SERVICES}/web")
    api.settle()
    assert slices(api) == {} and api.get(ENDPOINTS)["items"] == []


def test_what_somebody_else_changes_is_put_right(api):
    """And what they delete is made again."""
    api.post(SERVICES, service())
    api.settle()
    (made,) = api.get(SLICES)["items"]
    api.call("DELETE", f"{SLICES}/{made['metadata']['name']}")
    api.call("DELETE", f"{ENDPOINTS}/web")
    api.settle()
    assert slices(api) == {"web": []} and api.get(f"{ENDPOINTS}/web")


def test_without_a_selector_the_endpoints_are_for_others_to_write(api):
    """Nothing is made, and nothing taken away."""
    api.post(SERVICES, service(selector=None))
    api.post(
        ENDPOINTS,
        {"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}]},
    )
    api.settle()
    assert slices(api) == {} and api.get(f"{ENDPOINTS}/web")["subsets"][0]["ports"] == [{"port": 1, "protocol": "TCP"}]


def test_every_service_has_an_address_of_its_own(api):
    """From the range, the same one when it is made again."""
    made = [api.post(SERVICES, service(f"s{number}"))["spec"] for number in range(30)]
    addresses = [spec["clusterIP"] for spec in made]
    assert len(set(addresses)) == 30 and all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in made)
    assert all(address.startswith(str(SERVICE_RANGE.network_address)[:7]) for address in addresses)
    api.call("DELETE", f"{SERVICES}/s3")
    assert api.post(SERVICES, service("s3"))["spec"]["clusterIP"] == addresses[3]


ADDRESSES = {
    "headless": ({"clusterIP": "None"}, ("None", ["None"])),
    "asked for": ({"clusterIP": "127.96.7.7"}, ("127.96.7.7", ["127.96.7.7"])),
    "asked for as a list": ({"clusterIPs": ["127.96.7.7"]}, ("127.96.7.7", ["127.96.7.7"])),
    "of another name": ({"type": "ExternalName", "externalName": "a.b"}, (None, None)),
}


@pytest.mark.parametrize(("spec", "expected"), ADDRESSES.values(), ids=ADDRESSES)
def test_the_address_that_is_asked_for(api, spec, expected):
    """Or none."""
    found = api.post(SERVICES, service(**spec))["spec"]
    assert (found.get("clusterIP"), found.get("clusterIPs")) == expected


REFUSED = {
    "from elsewhere": ({"clusterIP": "10.0.0.1"}, "is not in the valid range. The range of valid IPs is 127.96.0.0/16"),
    "taken": ({"clusterIP": "127.96.0.5"}, "provided IP is already allocated"),
    "no address": ({"clusterIP": "x"}, "must be a valid IP address"),
    "none for a node port": (
        {"clusterIP": "None", "type": "NodePort"},
        "may not be set to 'None' for NodePort services",
    ),
    "a node port of a cluster IP": (
        {"ports": [{"port": 1, "nodePort": 30000}]},
        "may not be used when `type` is 'ClusterIP'",
    ),
    "one for another name": (
        {"type": "ExternalName", "externalName": "a.b", "clusterIPs": ["127.96.0.9"]},
        "may not be set for ExternalName services",
    ),
}


@pytest.mark.parametrize(("spec", "words"), REFUSED.values(), ids=REFUSED)
def test_an_address_that_cannot_be_had(api, spec, words):
    """In Kubernetes' words."""
    api.post(SERVICES, service("first", clusterIP="127.96.0.5"))
    code, status = api.call("POST", SERVICES, service(**spec))
    assert code == 422 and words in status["message"], status["message"]


def test_an_address_stays(api):
    """A manifest that does not mention it keeps it; another one is refused; ExternalName gives it back."""
    held = api.post(SERVICES, service())["spec"]["clusterIP"]
    code, after = api.call("PUT", f"{SERVICES}/web", service(ports=[{"port": 81}]))
    assert (code, after["spec"]["clusterIP"]) == (200, held)
    code, status = api.patch(f"{SERVICES}/web", {"spec": {"clusterIP": "127.96.0.5"}})
    assert code == 422 and "may not change once set" in status["message"]
    code, after = api.call("PUT", f"{SERVICES}/web", service(type="ExternalName", externalName="a.b"))
    assert code == 200 and "clusterIP" not in after["spec"]
    code, after = api.call("PUT", f"{SERVICES}/web", service())
    assert (code, after["spec"]["clusterIP"]) == (200, held)


SLICE_ERRORS = {
    "no addresses": (
        {"endpoints": [{"addresses": []}]},
        "endpoints[0].addresses: Required value: must contain at least 1 address",
    ),
    "another family": ({"endpoints": [{"addresses": ["::1"]}]}, "must be an IPv4 address"),
    "no such type": ({"addressType": "IPv5"}, 'addressType: Unsupported value: "IPv5"'),
    "two ports of a name": ({"ports": [{"port": 1}, {"port": 2}]}, 'ports[1].name: Duplicate value: ""'),
}


@pytest.mark.parametrize(("parts", "words"), SLICE_ERRORS.values(), ids=SLICE_ERRORS)
def test_a_bad_endpoint_slice_is_refused(api, parts, words):
    """With its field."""
    code, status = api.call("POST", SLICES, {"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []} | parts)
    assert code == 422 and words in status["message"], status["message"]

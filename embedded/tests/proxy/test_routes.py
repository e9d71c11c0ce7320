"""From Services and EndpointSlices to the table of addresses."""

import msgspec
import pytest

from embedded.proxy.objects import EndpointSliceObject, ServiceObject
from embedded.proxy.routes import routes


def service(name="web", address="127.96.0.1", namespace="default", ports=None):
    spec = {"clusterIP": address, "ports": ports or [{"port": 80}]}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": spec}, ServiceObject)


def endpoint(address, ready=True, serving=True, terminating=False):
    return {"addresses": [address], "conditions": {"ready": ready, "serving": serving, "terminating": terminating}}


def slice_(*endpoints, service="web", namespace="default", ports=None):
    meta = {"name": "s", "namespace": namespace, "labels": {"kubernetes.io/service-name": service}}
    ports = [{"name": "", "port": 8080}] if ports is None else ports
    return msgspec.convert({"metadata": meta, "endpoints": list(endpoints), "ports": ports}, EndpointSliceObject)


FRONT = ("127.96.0.1", 80)
ONE, TWO = ("127.64.0.1", 8080), ("127.64.0.2", 8080)
TABLES = {
    "all that are ready": (service(), [slice_(endpoint("127.64.0.2"), endpoint("127.64.0.1"))], {FRONT: (ONE, TWO)}),
    "from several slices": (
        service(),
        [slice_(endpoint("127.64.0.1")), slice_(endpoint("127.64.0.2"))],
        {FRONT: (ONE, TWO)},
    ),
    "not those that are not": (
        service(),
        [slice_(endpoint("127.64.0.1"), endpoint("127.64.0.2", ready=False))],
        {FRONT: (ONE,)},
    ),
    "unknown counts as ready": (service(), [slice_({"addresses": ["127.64.0.1"]})], {FRONT: (ONE,)}),
    "those that leave, where nobody else serves": (
        service(),
        [slice_(endpoint("127.64.0.1", ready=False, terminating=True))],
        {FRONT: (ONE,)},
    ),
    "but not beside those that stay": (
        service(),
        [slice_(endpoint("127.64.0.1"), endpoint("127.64.0.2", ready=False, terminating=True))],
        {FRONT: (ONE,)},
    ),
    "nobody": (service(), [slice_(endpoint("127.64.0.1", ready=False))], {}),
    "of another service": (service(), [slice_(endpoint("127.64.0.1"), service="other")], {}),
    "of another namespace": (service(), [slice_(endpoint("127.64.0.1"), namespace="other")], {}),
    "headless": (service(address="None"), [slice_(endpoint("127.64.0.1"))], {}),
    "an address of the world": (service(address="10.0.0.1"), [slice_(endpoint("127.64.0.1"))], {}),
    "an endpoint in the world": (service(), [slice_(endpoint("10.0.0.1"))], {}),
    "no TCP": (service(ports=[{"port": 80, "protocol": "UDP"}]), [slice_(endpoint("127.64.0.1"))], {}),
    "ports by their names": (
        service(ports=[{"port": 80, "name": "web"}, {"port": 81, "name": "metrics"}]),
        [slice_(endpoint("127.64.0.1"), ports=[{"name": "metrics", "port": 9}, {"name": "web", "port": 8080}])],
        {FRONT: (ONE,), ("127.96.0.1", 81): (("127.64.0.1", 9),)},
    ),
}


@pytest.mark.parametrize(("found", "slices", "expected"), TABLES.values(), ids=TABLES)
def test_who_is_behind_an_address(found, slices, expected):
    """Only addresses of the loopback, in order."""
    assert routes([found], slices) == expected


def test_addresses_of_the_world_where_they_are_routed():
    """On an API server of somebody else no Service and no pod has a loopback address."""
    found = routes([service(address="10.96.0.1")], [slice_(endpoint("198.18.0.2"))], routed=True)
    assert found == {("10.96.0.1", 80): (("198.18.0.2", 8080),)}
    assert routes([service(address="None")], [slice_(endpoint("198.18.0.2"))], routed=True) == {}

"""/etc/hosts has the pod, its aliases, and the Services that have an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from embedded.node.network.hosts_file import EndpointSliceObject, ServiceObject, text, write_in_place


def service(name: str, namespace: str, address: str) -> ServiceObject:
    told = {"metadata": {"name": name, "namespace": namespace}, "spec": {"clusterIP": address}}
    return msgspec.convert(told, ServiceObject)


def test_text(pod: Any) -> None:
    """The short name is that of the pod's own namespace; headless Services have none."""
    built = pod(
        hostAliases=[{"ip": "10.0.0.1", "hostnames": ["one", "two"]}], status={"podIP": "127.65.0.2"}, subdomain="sub"
    )
    services = [
        service("web", "shop", "127.96.0.2"),
        service("api", "other", "127.96.0.1"),
        service("headless", "shop", "None"),
        service("pending", "shop", ""),
    ]
    assert text(built, services).splitlines()[3:] == [
        "127.65.0.2\tweb.sub.shop.svc.cluster.local\tweb",
        "127.96.0.1\tapi.other\tapi.other.svc\tapi.other.svc.cluster.local",
        "127.96.0.2\tweb\tweb.shop\tweb.shop.svc\tweb.shop.svc.cluster.local",
        "10.0.0.1\tone\ttwo",
    ]
    assert text(pod(status={"podIP": "127.65.0.2"}), []).splitlines()[3:] == ["127.65.0.2\tweb"]


def behind(service: str, namespace: str, **addresses: str) -> EndpointSliceObject:
    labels = {"kubernetes.io/service-name": service}
    endpoints = [{"addresses": [address], "hostname": name} for name, address in addresses.items()]
    told = {
        "metadata": {"namespace": namespace, "labels": labels},
        "endpoints": [*endpoints, {"addresses": ["127.0.0.9"]}],
    }
    return msgspec.convert(told, EndpointSliceObject)


def test_pods_below_a_headless_service(pod: Any) -> None:
    """By `pod.service`, within their namespace; one without a host name has none."""
    built = pod(status={"podIP": "127.65.0.2"}, subdomain="train", hostname="w0")
    slices = [behind("train", "shop", w1="127.65.0.3", w0="127.65.0.2"), behind("train", "other", w0="127.65.0.7")]
    assert text(built, [], slices, before=["127.0.0.1\tmachine"]).splitlines() == [
        "127.0.0.1\tmachine",
        "127.65.0.2\tw0.train.shop.svc.cluster.local\tw0",
        "127.65.0.7\tw0.train.other\tw0.train.other.svc\tw0.train.other.svc.cluster.local",
        "127.65.0.2\tw0.train\tw0.train.shop\tw0.train.shop.svc\tw0.train.shop.svc.cluster.local",
        "127.65.0.3\tw1.train\tw1.train.shop\tw1.train.shop.svc\tw1.train.shop.svc.cluster.local",
    ]


def test_in_place(tmp_path: Path) -> None:
    """The same file, so that whoever has it mounted sees the change; shorter content leaves no rest."""
    file = tmp_path / "hosts"
    for content in ("long content\n", "short\n"):
        write_in_place(file, content)
        assert file.read_text() == content
    before = file.stat().st_ino
    write_in_place(file, "again\n")
    assert (file.stat().st_ino, file.read_text()) == (before, "again\n")

"""/etc/hosts has the pod, its aliases, and the Services that have an address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from embedded.node.network.hosts_file import ServiceObject, text, write_in_place


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


def test_in_place(tmp_path: Path) -> None:
    """The same file, so that whoever has it mounted sees the change; shorter content leaves no rest."""
    file = tmp_path / "hosts"
    for content in ("long content\n", "short\n"):
        write_in_place(file, content)
        assert file.read_text() == content
    before = file.stat().st_ino
    write_in_place(file, "again\n")
    assert (file.stat().st_ino, file.read_text()) == (before, "again\n")

"""Which ConfigMaps and Secrets a pod names, and that each is read once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from embedded.node.objects.sources import SourceKind, SourceRef, gather, of_container, of_volumes

MAP, SECRET = SourceRef(SourceKind.CONFIG_MAP, "c"), SourceRef(SourceKind.SECRET, "s")


def test_of_container(pod: Any) -> None:
    """From env and envFrom."""
    env = [
        {"name": "A", "value": "plain"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    built = pod(containers=[{"env": env, "envFrom": [{"configMapRef": {"name": "c"}}]}])
    assert set(of_container(built.spec.containers[0])) == {MAP, SECRET}


def test_of_volumes(pod: Any) -> None:
    """A Secret volume says secretName, a projected one name."""
    projected = {"name": "p", "projected": {"sources": [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}]}}
    volumes = [{"name": "v", "secret": {"secretName": "s"}}, {"name": "e", "emptyDir": {}}, projected]
    assert list(of_volumes(pod(volumes=volumes))) == [SECRET, MAP, SECRET]


def test_gather() -> None:
    """One read for each object; what does not exist is left out."""
    asked: list[SourceRef] = []

    async def read(ref: SourceRef) -> Mapping[str, bytes] | None:
        asked.append(ref)
        return {"k": b"v"} if ref == MAP else None

    found = asyncio.run(gather([MAP, SECRET, MAP], read))
    assert sorted(asked, key=str) == [MAP, SECRET]
    assert (found.get(MAP), found.get(SECRET)) == ({"k": b"v"}, None)

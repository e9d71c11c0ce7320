"""Evictions with an agent's token while the pods are being made, as fast as requests go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kube.client import KubeClient, path_of
from model.fault import KubernetesFault

_BOUND_SECONDS = 60.0
"""For one pod; a machine with nothing else to do takes 0.1."""


class Made(NamedTuple):
    """What came of one pod: whether an eviction of it was taken, and the last word about it once it was there."""

    name: str
    evicted: bool
    told: str


async def evict_while_made(admin: Path, thief: Path, pods: Sequence[dict[str, Any]]) -> list[Made]:
    """One pod after the other in namespace default; `admin` and `thief` are kubeconfigs."""
    async with (
        await KubeClient.connect(admin, "test") as maker,
        await KubeClient.connect(thief, "test-thief") as taker,
    ):
        return [await _made(maker, taker, pod) for pod in pods]


async def _made(maker: KubeClient, taker: KubeClient, pod: dict[str, Any]) -> Made:
    """By its name before it is there, then by the uid of whatever has that name, until that was answered twice."""
    name, taken, answers = pod["metadata"]["name"], False, list[str]()
    creation = asyncio.create_task(_created_a_little_later(maker, pod))
    async with asyncio.timeout(_BOUND_SECONDS):
        while not creation.done() or len(answers) < 2:
            taken |= await _evict(taker, name, None) == ""
            listed = await taker.get(
                path_of("v1/pods", namespace="default"), dict, fieldSelector=f"metadata.name={name}"
            )
            for found in listed["items"]:
                answers.append(await _evict(taker, name, found["metadata"]["uid"]))
                taken |= answers[-1] == ""
            if taken:
                break
    await creation
    return Made(name, taken, answers[-1] if answers else "")


async def _created_a_little_later(maker: KubeClient, pod: dict[str, Any]) -> None:
    await asyncio.sleep(0.02)
    await maker.create(path_of("v1/pods", namespace="default"), pod)


async def _evict(taker: KubeClient, name: str, uid: str | None) -> str:
    """What is said against it; empty where it was taken."""
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": "default"},
    }
    if uid is not None:
        body["deleteOptions"] = {"preconditions": {"uid": uid}}
    try:
        await taker.create(path_of("v1/pods", namespace="default", name=name, subresource="eviction"), body)
    except KubernetesFault as fault:
        return fault.what
    return ""

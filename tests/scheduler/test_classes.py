"""What is remembered of pods that are gone: whoever makes a pod chooses how much there is to remember."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest
from scheduler_builders import raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from model.resources import BATCH_CPU
from scheduler.core.snapshot.podclass import PodClass, PodTraits

PODS = 48
TEXT = "x" * (1 << 20)
MOST_KEPT = 20
"""Of a mebibyte each; 16 of them are forgotten together."""


def affinity(where: str, number: int) -> dict[str, Any]:
    """Terms that every node and nobody else meets, each a mebibyte long."""
    requirement = {"key": f"k{number}", "operator": "NotIn", "values": [TEXT]}
    if where == "nodes":
        terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
        return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    selector = {"matchExpressions": [{**requirement, "operator": "In"}]}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def asking(number: int, least: int, where: str, node: str = "") -> objects.Pod:
    pod = raw_pod(f"p{number}", batch_cpu=str(least + number), node_name=node, created=float(number))
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, affinity=affinity(where, number)))


def of_kind(kind: type[Any]) -> list[Any]:
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, kind)]


@pytest.mark.parametrize("where", ["nodes", "pods"])
@pytest.mark.parametrize("least", [100, 5000], ids=["placed", "waiting"])
def test_little_is_kept_of_pods_that_are_gone(least: int, where: str) -> None:
    """Made, judged and deleted again and again they take no memory for good; who stays is placed as before."""
    world = World().see(raw_node(batch_cpu="1000"))
    others = {id(each) for each in of_kind(PodTraits)}
    for number in range(PODS):
        pod = asking(number, least, where)
        world.see(pod).turn()
        if least < 1000:
            assert world.binder.assigned[f"p{number}"] == "n1"
            world.see(asking(number, least, where, "n1")).turn()
        world.gone(pod).turn(after=1.0)
    world.turn(after=100.0)
    asked = {dict(each.request).get(BATCH_CPU, 0) for each in of_kind(PodClass)} & set(range(least, least + PODS))
    assert len(asked) <= MOST_KEPT
    assert len({each for each in of_kind(PodTraits) if id(each) not in others and each.affinity.anti_pods}) <= MOST_KEPT
    world.see(raw_pod("next", batch_cpu="900")).turn()
    assert world.binder.assigned["next"] == "n1"

"""The allowance: Koordinator's formula, in quota and in milli-CPU, counted by cgroups or by pods."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.allowance import MILLI, NodeSize, allowance, by_cgroups, by_pods
from model.node import Node
from model.qos import KubernetesQoS, QoSClass
from model.resources import CPU, ResourceVector
from model.strategy import HostApplication

BATCH_APP = HostApplication("trainer", "/kubepods/besteffort/trainer", qos="BE", below_best_effort=True)
STRAY_APP = HostApplication("crawler", "/crawler", qos="BE")


def test_by_cgroups(build: Any) -> None:
    """The newest second lowers; raising wants the live window to agree, of online and system use alike."""
    found = by_cgroups(build.usage(online=build.averages(400, live=300), system=build.averages(100, live=250)))
    assert (found.now.online_millis, found.now.system_millis) == (400, 100)
    assert (found.calm.online_millis, found.calm.system_millis, found.apart_millis) == (400, 250, 0)


def test_by_pods(build: Any) -> None:
    """Who counts: all but Kubernetes class BestEffort, whatever their labels, and host applications but those below it."""
    web, plain = build.pod("web"), build.pod("plain", qos=QoSClass.NONE, kubernetes=KubernetesQoS.BEST_EFFORT)
    job = build.pod("job", qos=QoSClass.BE, kubernetes=KubernetesQoS.BURSTABLE)
    usage = build.usage(
        pods={pod.uid: build.averages(use) for pod, use in ((web, 300), (plain, 50), (job, 70))},
        host_applications={"trainer": build.averages(11), "crawler": build.averages(12), "unknown": build.averages(13)},
        unlisted_system=build.averages(140),
        online=build.averages(380),
    )
    found = by_pods(usage, (web, plain, job), (BATCH_APP, STRAY_APP))
    assert found.now == found.calm
    assert (found.now.online_millis, found.now.host_millis, found.now.system_millis) == (370, 25, 140)
    assert found.apart_millis == 10


def test_a_pod_that_is_measured_but_not_listed_is_online(build: Any) -> None:
    """Not knowing what it is lends less."""
    assert by_pods(build.usage(pods={"gone": build.averages(90)}), (), ()).now.online_millis == 90


def test_terms_in_both_units(build: Any, terms: Any) -> None:
    """The same parts, in us a period and in milli-CPU."""
    load = by_pods(build.usage(), (), ()).now
    found = allowance(NodeSize(4000, 500), load, 65)
    assert {term.name: term.value for term in found.terms} == {
        "capacity": 400_000,
        "margin": -140_000,
        "host applications": 0,
        "reserved": -50_000,
        "online used": 0,
    }
    assert allowance(NodeSize(4000, 500), load, 65, MILLI).value == 2100 and found.value == 210_000


@pytest.mark.parametrize(("annotated", "reserved"), [(0, 300), (200, 300), (700, 700)])
def test_reserved(annotated: int, reserved: int) -> None:
    """By the kubelet or by the annotation, whichever is more."""
    node = Node("n", ResourceVector({CPU: 4000}), ResourceVector({CPU: 3700}))
    assert NodeSize.of(node, annotated) == NodeSize(4000, reserved)


@pytest.mark.parametrize(
    ("allocatable", "raw", "reserved"), [(5550, 3700, 300), (5550, None, 0), (3600, 3700, 400), (5550, 4000, 0)]
)
def test_reserved_of_an_amplified_node(allocatable: int, raw: int | None, reserved: int) -> None:
    """What the kubelet keeps is told by allocatable as it was before; a Node that shrank meanwhile counts as it is."""
    node = Node("n", ResourceVector({CPU: 4000}), ResourceVector({CPU: allocatable}))
    assert NodeSize.of(node, 0, raw) == NodeSize(4000, reserved)

"""The allowance: Koordinator's formula, in quota and in milli-CPU, counted by cgroups or by pods."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.limit.allowance import (
    MILLI,
    NodeSize,
    allowance,
    by_cgroups,
    by_pods,
    left_beside,
    within_requests,
)
from model.node import Node
from model.qos import KubernetesQoS, QoSClass
from model.resources import CPU, ResourceVector
from model.strategy import HostApplication
from tests.pods import with_fields

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


# (requested, used in the newest second, in ten seconds) of each listed pod; use of all online pods in both; what is
# left uncounted of it in both
COVERED: dict[str, tuple[list[tuple[int, int, int]], tuple[int, int], tuple[int, int]]] = {
    "within its request": ([(500, 400, 300)], (400, 300), (400, 400)),
    "beyond it the rest counts": ([(500, 800, 800)], (800, 800), (500, 500)),
    "another's room covers nothing": ([(1000, 100, 100), (0, 300, 300)], (400, 400), (100, 100)),
    "raising counts who was beyond lately": ([(500, 400, 900)], (400, 900), (400, 500)),
    "each at its most": ([(100, 300, 0), (100, 0, 300)], (300, 300), (100, 0)),
    "an unlisted pod's use counts": ([(500, 400, 400)], (600, 600), (400, 400)),
    "nobody listed": ([], (400, 500), (0, 0)),
    "counters that differ": ([(500, 450, 450)], (400, 400), (400, 400)),
}


@pytest.mark.parametrize(("listed", "online", "expected"), COVERED.values(), ids=COVERED.keys())
def test_online_use_within_requests(
    build: Any, listed: list[tuple[int, int, int]], online: tuple[int, int], expected: tuple[int, int]
) -> None:
    """What weights give to online pods at any time; the calm view never leaves more uncounted use than the newest."""
    pods = [build.pod(str(index), cpu=asked) for index, (asked, _, _) in enumerate(listed)]
    each = zip(pods, listed, strict=True)
    used = {pod.uid: build.averages(last, live=live) for pod, (_, last, live) in each}
    usage = build.usage(used, online=build.averages(online[0], live=online[1]))
    found = within_requests(by_cgroups(usage), usage, pods)
    assert (found.now.covered_millis, found.calm.covered_millis) == expected
    assert found.requested_millis == sum(asked for asked, _, _ in listed)


@given(
    pods=st.lists(st.tuples(*[st.integers(0, 4000)] * 3), max_size=4),
    online=st.tuples(st.integers(0, 9000), st.integers(0, 9000)),
)
def test_the_calm_view_never_allows_more(build: Any, pods: list[tuple[int, int, int]], online: tuple[int, int]) -> None:
    """Nor does either allow more than the node without what the system uses, and the margin."""
    made = [build.pod(str(index), cpu=asked) for index, (asked, _, _) in enumerate(pods)]
    used = {pod.uid: build.averages(last, live=live) for pod, (_, last, live) in zip(made, pods, strict=True)}
    usage = build.usage(used, online=build.averages(online[0], live=online[1]))
    found = within_requests(by_cgroups(usage), usage, made)
    now, calm = (allowance(NodeSize(4000), load, 99, MILLI).value for load in (found.now, found.calm))
    assert calm <= now <= 4200 - 100


def test_who_covers_nothing(build: Any) -> None:
    """Pods of class BestEffort, whose use is no online use, and a request that a resize has not brought yet."""
    plain = build.pod("plain", cpu=900, kubernetes=KubernetesQoS.BEST_EFFORT)
    growing = build.pod("growing", cpu=900)
    growing = with_fields(growing, requests=growing.spec.requests, certain=ResourceVector({CPU: 200}))
    asking = with_fields(build.pod("asking", cpu=900), requests=growing.spec.requests, certain=ResourceVector())
    usage = build.usage({pod.uid: build.averages(400) for pod in (plain, growing, asking)}, online=build.averages(800))
    found = within_requests(by_cgroups(usage), usage, (plain, growing, asking))
    assert (found.now.covered_millis, found.requested_millis) == (200, 200)


def test_what_is_left_for_best_effort(build: Any) -> None:
    """Where no ceiling says it: of 4 CPUs less 100m of the system and 400m of pods, within requests or not."""
    usage = build.usage({build.pod("web").uid: build.averages(400)})
    demand = by_cgroups(usage)
    assert left_beside(NodeSize(4000), demand.now) is None
    covered = within_requests(demand, usage, (build.pod("web", cpu=900),))
    assert left_beside(NodeSize(4000), covered.now) == 3500

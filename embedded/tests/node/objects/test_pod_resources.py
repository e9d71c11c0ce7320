"""Requests and limits become the kernel values that the kubelet would write."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.cgroups.ceilings import Ceiling
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects import pod_resources

MI = 1 << 20


@pytest.mark.parametrize(
    ("millis", "shares"), [(0, 2), (1, 2), (2, 2), (10, 10), (100, 102), (1000, 1024), (10**9, 262144)]
)
def test_shares(millis: int, shares: int) -> None:
    """1024 a CPU, never below 2, never above the kernel's most."""
    assert pod_resources.shares(millis) == shares


@pytest.mark.parametrize(
    ("millis", "quota"), [(0, None), (1, 1000), (10, 1000), (15, 1500), (1000, 100_000), (2500, 250_000)]
)
def test_quota(millis: int, quota: int | None) -> None:
    """100 µs a milli-CPU per 100 ms, never below 1 ms; no limit, no quota."""
    assert pod_resources.quota_us(millis) == quota


def container(
    requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "name": more.pop("name", "c"),
        "image": "busybox",
        "resources": {"requests": requests, "limits": limits},
        **more,
    }


@pytest.mark.parametrize(
    ("containers", "qos"),
    [
        pytest.param([container()], KubernetesQoS.BEST_EFFORT, id="nothing asked"),
        pytest.param(
            [container({"kubernetes.io/batch-cpu": "500"}, {"kubernetes.io/batch-cpu": "500"})],
            KubernetesQoS.BEST_EFFORT,
            id="batch resources do not count",
        ),
        pytest.param([container({"cpu": "1"})], KubernetesQoS.BURSTABLE, id="request only"),
        pytest.param(
            [container(None, {"cpu": "1", "memory": "1Gi"})], KubernetesQoS.GUARANTEED, id="limits are requests"
        ),
        pytest.param(
            [container({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"})],
            KubernetesQoS.BURSTABLE,
            id="unequal",
        ),
        pytest.param(
            [container(None, {"cpu": "1", "memory": "1Gi"}), container(name="d")],
            KubernetesQoS.BURSTABLE,
            id="one without",
        ),
    ],
)
def test_qos_class(pod: Any, containers: list[dict[str, Any]], qos: KubernetesQoS) -> None:
    """Only cpu and memory decide, over all containers."""
    assert pod_resources.qos_class(pod(containers=containers)) is qos


@pytest.mark.parametrize(
    ("containers", "spec", "wanted"),
    [
        pytest.param([container({"cpu": "100m"}), container({"cpu": "1"}, name="d")], {}, {"cpu": 1100}, id="sum"),
        pytest.param(
            [container({"cpu": "100m"})],
            {"initContainers": [container({"cpu": "2"}, name="i")]},
            {"cpu": 2000},
            id="large init",
        ),
        pytest.param(
            [container({"cpu": "1"})],
            {
                "initContainers": [
                    container({"cpu": "1"}, name="s", restartPolicy="Always"),
                    container({"cpu": "500m"}, name="i"),
                ]
            },
            {"cpu": 2000},
            id="sidecars run along",
        ),
        pytest.param([container({"cpu": "1"})], {"overhead": {"cpu": "250m"}}, {"cpu": 1250}, id="overhead"),
        pytest.param(
            [container({"kubernetes.io/batch-memory": "1Gi"})], {}, {"kubernetes.io/batch-memory": 1 << 30}, id="batch"
        ),
    ],
)
def test_effective_requests(
    pod: Any, containers: list[dict[str, Any]], spec: dict[str, Any], wanted: dict[str, int]
) -> None:
    """Kubernetes' effective request: containers and sidecars, or the largest init step, plus overhead."""
    assert dict(pod_resources.effective_requests(pod(containers=containers, **spec)).amounts) == wanted


@pytest.mark.parametrize(
    ("containers", "ceiling"),
    [
        pytest.param([container()], Ceiling(2), id="best effort"),
        pytest.param(
            [
                container(None, {"cpu": "500m", "memory": "64Mi"}),
                container(None, {"cpu": "1", "memory": "64Mi"}, name="d"),
            ],
            Ceiling(1536, 150_000, 128 * MI),
            id="all limited: the pod is too",
        ),
        pytest.param(
            [container(None, {"cpu": "500m", "memory": "64Mi"}), container({"cpu": "1"}, {"memory": "64Mi"}, name="d")],
            Ceiling(1536, None, 128 * MI),
            id="one without a CPU limit: no quota",
        ),
    ],
)
def test_pod_ceiling(pod: Any, containers: list[dict[str, Any]], ceiling: Ceiling) -> None:
    """A pod has a ceiling only where every container has one."""
    assert pod_resources.pod_ceiling(pod(containers=containers)) == ceiling


@pytest.mark.parametrize(
    ("qos", "memory", "score"),
    [
        pytest.param(KubernetesQoS.GUARANTEED, "1Gi", -997, id="guaranteed"),
        pytest.param(KubernetesQoS.BEST_EFFORT, "0", 1000, id="best effort"),
        pytest.param(KubernetesQoS.BURSTABLE, "1Gi", 750, id="a quarter of memory"),
        pytest.param(KubernetesQoS.BURSTABLE, "0", 999, id="no request stays below best effort"),
        pytest.param(KubernetesQoS.BURSTABLE, "4Gi", 3, id="all memory stays above guaranteed"),
    ],
)
def test_oom_score(pod: Any, qos: KubernetesQoS, memory: str, score: int) -> None:
    """The kubelet's order of victims on a machine with 4 GiB."""
    one = pod(containers=[container({"memory": memory})]).spec.containers[0]
    assert pod_resources.oom_score(one, qos, 4 << 30) == score


@pytest.mark.parametrize(
    ("left", "right", "widest"),
    [
        pytest.param(Ceiling(2, 10_000, 5), Ceiling(4, 8_000, 6), Ceiling(4, 10_000, 6), id="the larger of each"),
        pytest.param(Ceiling(2, None, 5), Ceiling(2, 8_000, None), Ceiling(2), id="none is the largest"),
    ],
)
def test_widest(left: Ceiling, right: Ceiling, widest: Ceiling) -> None:
    """What covers both, whichever is asked."""
    assert left.widest(right) == right.widest(left) == widest

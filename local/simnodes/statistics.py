"""Statistics of simulated nodes and pods, as the kubelet's Summary API. Pure.

Source: kubernetes staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go.
"""

from __future__ import annotations

from typing import Any

import msgspec

from embedded.node.objects.times import stamp
from local.simnodes.cluster import SimulatedCluster
from local.simnodes.lifecycle import PodStage, moment
from local.simnodes.pods import SimulatedPod
from model.report import Usage


def summary(cluster: SimulatedCluster, name: str, now: float) -> bytes:
    """JSON of a Summary of node `name`. Raises KeyError for a node that is not simulated."""
    use = cluster.use(name, now)
    node = {"nodeName": name, **_figures(use.node, now)}
    running = (each for each in cluster.pods_of(name) if each.life.stage is PodStage.RUNNING)
    pods = [_pod(each, use.pods[each.object.uid], now) for each in running]
    return msgspec.json.encode({"node": node, "pods": pods})


def _pod(held: SimulatedPod, use: Usage, now: float) -> dict[str, Any]:
    metadata, containers = held.object.metadata, held.object.spec.containers
    # Nobody says which container does the work, so all of them do.
    part = Usage(use.cpu_millis // len(containers), use.memory_bytes // len(containers))
    return {
        "podRef": {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid},
        "startTime": stamp(moment(held.life.began)),
        "containers": [{"name": each.name, **_figures(part, now)} for each in containers],
        **_figures(use, now),
    }


def _figures(use: Usage, now: float) -> dict[str, Any]:
    at = stamp(moment(now))
    return {
        "cpu": {"time": at, "usageNanoCores": use.cpu_millis * 1_000_000},
        "memory": {"time": at, "usageBytes": use.memory_bytes, "workingSetBytes": use.memory_bytes},
    }

"""Departed pods: of best effort, gone from the API server while their processes go on.

Whoever deletes a pod by force takes it from every list at once. Its kubelet ends it within the pod's own grace all the
same, which may be a year, and no eviction can be asked for. Source: kubernetes pkg/kubelet/pod_workers.go
(calculateEffectiveGracePeriod). What is known of them is what was listed before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from agent.core.observe.observation import Observation
from model.pod.pod import Pod

_SYSTEM_PRIORITY = 2_000_000_000
"""From here on are the classes system-cluster-critical and system-node-critical (k8s.io/api scheduling/v1 types.go)."""


class DepartedPods(msgspec.Struct, frozen=True):
    """By cgroup: `listed` are pods that may be killed as a last resort, `gone` those that were and that nobody lists
    any more.
    """

    listed: Mapping[str, Pod] = {}
    gone: Mapping[str, Pod] = {}

    def followed(self, observation: Observation, pods: Iterable[Pod]) -> DepartedPods:
        """One tick later; `pods` are those that are listed."""
        known, listed = {**self.gone, **self.listed}, dict(_mortal(observation, pods))
        unlisted = observation.unlisted_best_effort
        return DepartedPods(listed, {path: known[path] for path in unlisted if path in known and path not in listed})


def _mortal(observation: Observation, pods: Iterable[Pod]) -> Iterator[tuple[str, Pod]]:
    """Those that may be killed, each with its cgroup."""
    below = frozenset(observation.places.best_effort)
    for pod in pods:
        place = observation.places.pods.get(pod.uid)
        if place is not None and place.path in below and _may_die(pod):
            yield place.path, pod


def _may_die(pod: Pod) -> bool:
    """Neither a static pod, whose mirror alone is known, nor one the node itself lives on (kube-proxy, its network)."""
    static = pod.cgroup_uid not in ("", pod.uid)
    return pod.best_effort and not pod.terminal and not static and pod.spec.priority < _SYSTEM_PRIORITY

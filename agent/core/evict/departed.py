"""Departed pods: of best effort, gone from the API server while their processes go on.

Whoever deletes a pod by force takes it from every list at once. Its kubelet ends it within the pod's own grace all the
same, which may be a year, and no eviction can be asked for. Source: kubernetes pkg/kubelet/pod_workers.go
(calculateEffectiveGracePeriod).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.observe.observation import Observation
from model.pod.pod import Pod


class DepartedPods(msgspec.Struct, frozen=True):
    """By cgroup: `listed` are those that may be killed as a last resort, as of the tick before; `gone` those of them
    that nobody lists any more.
    """

    listed: Mapping[str, Pod] = {}
    gone: Mapping[str, Pod] = {}

    def followed(self, observation: Observation, mortal: Iterable[tuple[str, Pod]]) -> DepartedPods:
        """One tick later; `mortal` are the listed ones that may be killed, each with its cgroup."""
        known, listed = {**self.gone, **self.listed}, dict(mortal)
        unlisted = observation.unlisted_best_effort
        return DepartedPods(listed, {path: known[path] for path in unlisted if path in known and path not in listed})

"""Simulated jobs: what comes when, asks for how much, and runs how long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from kube import objects
from kube.dialects.gangs.membership import ANNOTATION_MIN, ANNOTATION_NAME

SCHEDULER = "koord-scheduler"
EPOCH_SECONDS = 1_700_000_000.0
"""Unix time at which every simulation begins."""


class SimulatedJob(msgspec.Struct, frozen=True):
    """`submit_seconds` is from the begin of the simulation; each of `pods` requests `request`, and all start together.

    `deadline_seconds` is the pods' activeDeadlineSeconds, None without one.
    """

    name: str
    submit_seconds: float
    run_seconds: float
    request: tuple[tuple[str, int], ...]
    pods: int = 1
    priority: int = 0
    namespace: str = "default"
    labels: tuple[tuple[str, str], ...] = ()
    deadline_seconds: int | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    def bodies(self, now: float, life: int = 0) -> tuple[objects.Pod, ...]:
        """Its pods as the API server has them, created at Unix time `now`; another `life` has other uids."""
        amounts: dict[str, Any] = dict(self.request)
        gang = {} if self.pods == 1 else {ANNOTATION_NAME: self.name, ANNOTATION_MIN: str(self.pods)}
        spec = objects.PodSpec(
            containers=[objects.Container("main", objects.Resources(amounts, amounts))],
            scheduler_name=SCHEDULER,
            priority=self.priority,
            active_deadline_seconds=self.deadline_seconds,
        )
        return tuple(
            objects.Pod(
                objects.Metadata(
                    name=f"{self.name}-{index}",
                    namespace=self.namespace,
                    uid=f"{self.key}-{index}-{life}",
                    labels=dict(self.labels),
                    annotations=gang,
                    creation_timestamp=datetime.fromtimestamp(now, UTC),
                ),
                spec,
                objects.PodStatus(phase="Pending"),
            )
            for index in range(self.pods)
        )

"""The pods of a Job as its controller sees them: the few fields that count, decoded without the rest."""

from __future__ import annotations

import msgspec

from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import parse_time

INDEX_KEY = "batch.kubernetes.io/job-completion-index"  # annotation and label
FAILURES_KEY = "batch.kubernetes.io/job-index-failure-count"  # annotation


class _Field(msgspec.Struct, rename="camel", frozen=True, gc=False): ...


class _Terminated(_Field, frozen=True):
    exit_code: int = 0
    finished_at: str | None = None


class _State(_Field, frozen=True):
    terminated: _Terminated | None = None


class ContainerEnd(_Field, frozen=True):
    """One container's status; `exit_code` is None while it has not ended."""

    name: str
    restart_count: int | None = None
    state: _State | None = None

    @property
    def ended(self) -> _Terminated | None:
        return self.state.terminated if self.state else None


class PodCondition(_Field, frozen=True):
    type: str
    status: str
    last_transition_time: str | None = None


class _Owner(_Field, frozen=True):
    uid: str
    controller: bool | None = None


class _Metadata(_Field, frozen=True):
    name: str
    uid: str
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[_Owner, ...] | None = None


class _Status(_Field, frozen=True):
    phase: str | None = None
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerEnd, ...] | None = None
    init_container_statuses: tuple[ContainerEnd, ...] | None = None


class JobPod(_Field, frozen=True):
    """One pod of a Job."""

    metadata: _Metadata
    status: _Status = _Status()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def controller_uid(self) -> str | None:
        return next((owner.uid for owner in self.metadata.owner_references or () if owner.controller), None)

    @property
    def phase(self) -> str:
        return self.status.phase or "Pending"

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        return not self.finished and not self.deleting

    @property
    def ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.conditions)

    @property
    def conditions(self) -> tuple[PodCondition, ...]:
        return self.status.conditions or ()

    @property
    def containers(self) -> tuple[ContainerEnd, ...]:
        """Application containers first, then init containers."""
        return (*(self.status.container_statuses or ()), *(self.status.init_container_statuses or ()))

    @property
    def index(self) -> int | None:
        return natural((self.metadata.annotations or {}).get(INDEX_KEY, ""))

    @property
    def restarts(self) -> int:
        return sum(container.restart_count or 0 for container in self.containers)

    @property
    def ended_at(self) -> float:
        """When it ended, in seconds: its last container's end, or the best guess that upstream makes without one."""
        ends = [parse_time(c.ended.finished_at) or 0.0 for c in self.containers if c.ended]
        if last := max(ends, default=0.0):
            return last
        unready = (c.last_transition_time for c in self.conditions if c.type == "Ready" and c.status == "False")
        if (moment := parse_time(next(unready, None))) is not None:
            return moment
        if (moment := parse_time(self.metadata.deletion_timestamp)) is not None:
            return moment - (self.metadata.deletion_grace_period_seconds or 0)
        return parse_time(self.metadata.creation_timestamp) or 0.0


decode_job_pod = msgspec.json.Decoder(JobPod).decode

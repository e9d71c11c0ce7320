"""Ports of the scheduler: what it needs from outside, and what may be asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from kube.objects import Condition
from model.decision import Decision
from model.metrics import MetricSample
from model.placement import Placement, Scored
from model.pod.colocation import StandingNotice
from model.queue import JobAccount, QueueAccount, QueueStanding, QuotaShortage
from model.reason import Reason
from model.report import CheckpointSaved, EvictionCost, NodeReport, PreemptionNotice
from model.suspended.workload import WorkloadAdmission
from model.workload import GangTimes
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.gangs.volcano_phase import VolcanoStatus


class NamedObject(msgspec.Struct, frozen=True):
    """A namespaced object of one life; `scheduler` is the one that a pod asks for, `group` the API group where kinds of
    one name are told apart by it.
    """

    namespace: str
    name: str
    uid: str
    scheduler: str = ""
    group: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class Clock(Protocol):
    """Unix seconds that never go back."""

    def __call__(self) -> float: ...


class Binder(Protocol):
    """Binds pods."""

    async def bind(self, placement: Placement) -> None:
        """Returns once the API server has taken the placement's annotations and bound the pod.

        Raises KubernetesFault; without an answer (status 0) or from 500 on the pod may be bound all the same.
        """

    async def bound(self, placement: Placement) -> bool:
        """Whether the pod is bound as placed. Raises KubernetesFault where the API server does not say."""


class StatusWriter(Protocol):
    """Writes what a person reads with kubectl."""

    async def unscheduled(self, pod: NamedObject, message: str, *, first: bool, nominated: str | None = None) -> None:
        """Condition PodScheduled=False, reason Unschedulable; `first` dates it again.

        `nominated` is written as nominatedNodeName, empty clears it, None leaves it. Raises KubernetesFault.
        """

    async def admit(self, workload: NamedObject, admission: WorkloadAdmission) -> None:
        """The Workload's status says that it is admitted. Raises KubernetesFault, also where it waits no more."""

    async def gang_status(self, gang: NamedObject, status: GangStatus | VolcanoStatus) -> None:
        """The PodGroup's status. Raises KubernetesFault."""

    async def gang_times(self, gang: NamedObject, times: GangTimes) -> None:
        """The times as annotations of the PodGroup, which every definition keeps. Raises KubernetesFault."""

    async def group_condition(self, gang: NamedObject, condition: Condition) -> None:
        """A condition of scheduling.k8s.io's PodGroup. Raises KubernetesFault."""


class WorkloadWriter(Protocol):
    """Writes statuses of Workloads, each on the version that it read. Raises KubernetesFault."""

    async def admit(self, named: NamedObject, admission: WorkloadAdmission) -> None:
        """It is admitted; a fault where it waits no more."""

    async def pending(self, named: NamedObject, message: str) -> None:
        """What it waits for."""

    async def evict(self, named: NamedObject, reason: str, message: str) -> None:
        """It is to go; done where it is not admitted."""


class PodDeleter(Protocol):
    """Makes pods go."""

    async def evict(self, pod: NamedObject, reason: str, message: str, *, require_condition: bool = True) -> None:
        """Condition DisruptionTarget, then deletion with the pod's own grace; done where that uid is gone already.

        Without `require_condition` the condition may fail. Raises KubernetesFault.
        """


class NoticeWriter(Protocol):
    """Writes on a pod that it is to go, where people and the pod itself see it."""

    async def show(self, pod: NamedObject, notice: StandingNotice) -> None:
        """The notice takes the place of any before it; done where that uid is gone. Raises KubernetesFault."""

    async def hide(self, pod: NamedObject, notice: StandingNotice) -> None:
        """That notice goes; done where it does not stand, or another does. Raises KubernetesFault."""


class NoticeSender(Protocol):
    """Tells a pod, by the agent of its node, that it is to go; returns at once and never fails."""

    def notify(self, node: str, notice: PreemptionNotice) -> None: ...

    def withdraw(self, node: str, pod_uid: str) -> None: ...


class Announcer(Protocol):
    """Events; returns at once and never fails."""

    def scheduled(self, pod: NamedObject, node: str) -> None: ...

    def failed(self, pod: NamedObject, message: str) -> None: ...

    def gang(self, gang: NamedObject, reason: str, message: str, *, warning: bool) -> None: ...

    def preempted(self, pod: NamedObject, note: str) -> None: ...

    def unserved(self, pod: NamedObject, message: str) -> None: ...

    def configuration(self, config_map: NamedObject, reason: str, message: str, *, warning: bool) -> None: ...


class Meter(Protocol):
    """Counts."""

    def cycle(self, seconds: float, scheduled: int, unschedulable: int) -> None:
        """One cycle took `seconds` and decided on so many workloads."""

    def bound(self, seconds: float, result: str) -> None:
        """One binding took `seconds`; result is `bound` or `failed`."""

    def waited(self, seconds: float) -> None:
        """A pod was bound `seconds` after its creation."""

    def waiting(self, candidates: int, parked: int, held: int) -> None:
        """How many workloads wait after a cycle."""

    def refused(self, kind: str) -> None:
        """An object of `kind` could not be read."""

    def timed_out(self, gangs: int) -> None:
        """So many gangs found no place within their timeout."""

    def set_aside(self, workloads: int) -> None:
        """So many workloads were set aside by an error of the scheduler itself."""

    def considered(self, reason: Reason) -> None:
        """Preemption was considered for a workload, with this outcome."""

    def preempted(self, victims: int) -> None:
        """A plan that evicts so many pods was made."""

    def evicted(self, result: str) -> None:
        """A victim's eviction was carried out, or not: `done` or `failed`."""

    def job_ended_waiting(self, seconds: float, queue: str, job_type: str, result: str) -> None:
        """A job was `scheduled`, or gave up by `timeout`, so long after its creation; the type is its owner's kind.

        Every queue and type makes series of its own: none is any text that a pod may hold.
        """

    def gang_ended_waiting(self, result: str, *, timed_out: bool) -> None:
        """A gang was `scheduled`, or out of time."""

    def job_completed(self, seconds: float, queue: str, job_type: str, status: str) -> None:
        """A job `succeeded`, or `failed`, so long after its creation; the type is its own, such as PyTorchJob."""

    def queues(self, names: Collection[str], series: Mapping[str, Sequence[MetricSample]]) -> None:
        """All there is to tell of queues now, by row of the table; what is not among it any more is gone.

        `names`: all queues there are; what was counted of others is gone, too.
        """

    def lost_work(self, queue: str, seconds: float) -> None:
        """A pod of the queue was evicted, and lost so much work."""

    def checkpoint(self, job: str, reason: str, status: str) -> None:
        """A job (`namespace/name`) saved on `notice` or by `interval`: `complete`; or it was told and `missed` it.

        Of the jobs that did so last alone: the name is any text.
        """

    def job_gone(self, job: str) -> None:
        """The job is deleted: what was counted by its name is gone, too."""

    def job_preempted(self, preemptor_queue: str, victim_queue: str, reason: Reason) -> None:
        """A job loses pods to one of a queue."""


class PodExplanation(msgspec.Struct, frozen=True):
    """`queue_position` 1 is next, 0 not queued; `message` is the text of the pod's condition.

    `preemption` is what came of making room for it, `nearest` says which node comes nearest to fitting. `unserved` are
    sentences on queues and groups that it names and nobody serves, `scored` is why a lone pod has its node. `stage` is
    where it waits, and `shortages` are those of its queue's quota.
    """

    node: str = ""
    gang: str = ""
    decision: Decision | None = None
    queue_position: int = 0
    message: str = ""
    preemption: Decision | None = None
    nearest: str = ""
    nominated_node: str = ""
    unserved: tuple[str, ...] = ()
    scored: Scored | None = None
    queue: str = ""
    stage: str = ""
    shortages: tuple[QuotaShortage, ...] = ()


class GangExplanation(msgspec.Struct, frozen=True):
    """A gang with the newest decision about it; `nominated` are pod → node, `waiting` is how many members wait.

    `stage` and `shortages` as of a pod.
    """

    namespace: str
    name: str
    min_member: int
    members: int
    scheduled: int
    problem: str = ""
    decision: Decision | None = None
    queue_position: int = 0
    message: str = ""
    preemption: Decision | None = None
    nearest: str = ""
    nominated: Mapping[str, str] = {}
    waiting: int = 0
    queue: str = ""
    stage: str = ""
    shortages: tuple[QuotaShortage, ...] = ()


class NodeExplanation(msgspec.Struct, frozen=True):
    """Amounts in base units; `report_age_seconds` is None where the node's agent has not reported."""

    node: str
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    link_connected: bool
    report_age_seconds: float | None


class Answers(Protocol):
    """What diagnostics may ask."""

    def pod(self, namespace: str, name: str) -> PodExplanation | None: ...

    def gang(self, namespace: str, name: str) -> GangExplanation | None: ...

    def gangs(self) -> tuple[GangExplanation, ...]: ...

    def queues(self) -> tuple[QueueStanding, ...]:
        """In the order of their tree, those above before those below."""

    def queue(self, name: str) -> QueueAccount | None: ...

    def job(self, namespace: str, name: str) -> JobAccount | None:
        """A gang, else the pods of the controller, else the pod of that name, and the progress of a job of ours."""

    def nodes(self) -> tuple[NodeExplanation, ...]: ...

    def settings(self) -> bytes:
        """The settings in force, as JSON."""

    def watch(self, subject_prefix: str, history: int) -> AsyncIterator[Decision]: ...


class NodeReportSink(Protocol):
    """Where the link hands in what agents say, and fetches what they are to know."""

    def connected(self, node: str) -> None: ...

    def disconnected(self, node: str) -> None: ...

    def report(self, node: str, report: NodeReport) -> None: ...

    def decision(self, node: str, decision: Decision) -> None: ...

    def checkpoints(self, told: Iterable[tuple[str, CheckpointSaved]]) -> None: ...

    def costs(self, node: str) -> tuple[EvictionCost, ...]: ...

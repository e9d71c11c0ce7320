"""Turn: what one turn of the scheduler decides, to be carried out by scheduler.publish."""

from __future__ import annotations

import msgspec

from kube.objects import Condition
from model.decision import Decision
from model.placement import EvictionPlan, Placement
from model.pod.colocation import StandingNotice
from model.suspended.workload import WorkloadAdmission
from model.workload import GangTimes, WorkloadId
from scheduler.cache.refusals import Refusal
from scheduler.core.gangs.phase import GangStatus
from scheduler.core.gangs.volcano_phase import VolcanoStatus
from scheduler.core.scores.choice import NodeChoice
from scheduler.ports import NamedObject
from scheduler.settings_in_force import ConfigEvent


class Bind(msgspec.Struct, frozen=True):
    """One pod to bind."""

    pod: NamedObject
    placement: Placement
    created_seconds: float


class BindingBatch(msgspec.Struct, frozen=True):
    """Bindings of one decision; with `strict` a failure releases those not yet tried."""

    subject: WorkloadId
    strict: bool
    binds: tuple[Bind, ...]


class PodConditionWrite(msgspec.Struct, frozen=True):
    """A waiting pod's new condition; `first` when it had none, `event` where the message is news.

    `nominated` is its new nominatedNodeName, empty to clear it, None to leave it as it is.
    """

    pod: NamedObject
    message: str
    first: bool = True
    nominated: str | None = None
    event: bool = True


class Eviction(msgspec.Struct, frozen=True):
    """A pod that goes: condition DisruptionTarget with `reason` and `message`, then a deletion of that very uid.

    `note` is the Event's text.
    """

    pod: NamedObject
    reason: str
    message: str
    note: str


class WorkloadAdmissionWrite(msgspec.Struct, frozen=True):
    """A Workload that is admitted: its status says so."""

    workload: NamedObject
    admission: WorkloadAdmission


class Notice(msgspec.Struct, frozen=True):
    """A pod of `node` is told that it goes; `withdrawn`: that notice stands no more. `shown`: on the pod, too."""

    node: str
    pod: NamedObject
    told: StandingNotice
    withdrawn: bool = False
    shown: bool = True


class LostWork(msgspec.Struct, frozen=True):
    """Work of one pod of a job (`namespace/name`), in a queue, that is lost by its eviction, in seconds.

    `unsaved`: the job asked for notice, and saved nothing since it was told.
    """

    subject: WorkloadId
    job: str
    queue: str
    seconds: float
    unsaved: bool = False


class GangCondition(msgspec.Struct, frozen=True):
    """A condition for scheduling.k8s.io's PodGroup."""

    gang: NamedObject
    condition: Condition

    @property
    def key(self) -> tuple[str, str]:
        """What it says something about: the PodGroup's uid and the type; the newest word counts."""
        return (self.gang.uid, self.condition.type)


class GangEvent(msgspec.Struct, frozen=True):
    """An Event on a PodGroup."""

    gang: NamedObject
    reason: str
    message: str
    warning: bool = True


class GangStatusWrite(msgspec.Struct, frozen=True):
    """A PodGroup's new status; `times` are written before it, None leaves them."""

    gang: NamedObject
    status: GangStatus | VolcanoStatus
    times: GangTimes | None = None


class EndedWait(msgspec.Struct, frozen=True):
    """A job that waits no more: `scheduled`, or out of time (`timeout`), so many seconds after its creation."""

    queue: str
    job_type: str
    result: str
    seconds: float
    gang: bool


class Turn(msgspec.Struct):
    """What one turn decided; `more` when heads are left for the next turn at once.

    `unserved` are pods that name what nobody serves, and the sentence about it.

    `spared` are uids of pods that need not go any more, where that is not done yet. `timeouts` counts gangs that found
    no place in time, `reread` says that gangs without words of their own come out differently,
    `plans` holds each plan made; `insights` are, by subject, what came of
    preemption for those that wait, `choices` why lone pods have their nodes. `errors` are of ours, each with the
    subject that was set aside for it.
    """

    decisions: list[Decision] = msgspec.field(default_factory=list)
    batches: list[BindingBatch] = msgspec.field(default_factory=list)
    admissions: list[WorkloadAdmissionWrite] = msgspec.field(default_factory=list)
    pod_conditions: list[PodConditionWrite] = msgspec.field(default_factory=list)
    gang_statuses: list[GangStatusWrite] = msgspec.field(default_factory=list)
    conditions: list[GangCondition] = msgspec.field(default_factory=list)
    insights: dict[WorkloadId, Decision] = msgspec.field(default_factory=dict)
    choices: dict[WorkloadId, NodeChoice] = msgspec.field(default_factory=dict)
    gang_events: list[GangEvent] = msgspec.field(default_factory=list)
    config_events: list[ConfigEvent] = msgspec.field(default_factory=list)
    evictions: list[Eviction] = msgspec.field(default_factory=list)
    spared: list[str] = msgspec.field(default_factory=list)
    notices: list[Notice] = msgspec.field(default_factory=list)
    lost: list[LostWork] = msgspec.field(default_factory=list)
    invalid_gangs: list[tuple[NamedObject, str]] = msgspec.field(default_factory=list)
    refusals: list[Refusal] = msgspec.field(default_factory=list)
    unserved: list[tuple[NamedObject, str]] = msgspec.field(default_factory=list)
    ended_waits: list[EndedWait] = msgspec.field(default_factory=list)
    gone: list[WorkloadId] = msgspec.field(default_factory=list)
    plans: list[EvictionPlan] = msgspec.field(default_factory=list)
    timeouts: int = 0
    reread: bool = False
    errors: list[tuple[WorkloadId, Exception]] = msgspec.field(default_factory=list)
    more: bool = False

    def add(self, part: Turn) -> None:
        """What somebody decided of this turn, after what is in it already."""
        for name in self.__struct_fields__:
            found = getattr(part, name)
            if not found:
                continue
            if isinstance(found, list):
                getattr(self, name).extend(found)
            elif isinstance(found, dict):
                getattr(self, name).update(found)
            elif isinstance(found, bool):
                setattr(self, name, found)
            else:
                setattr(self, name, getattr(self, name) + found)

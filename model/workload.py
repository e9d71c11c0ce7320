"""Workload: the unit that queues, is admitted, placed and explained — a job, a gang or a lone pod."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from model.priority import PreemptionPolicy
from model.resources import ResourceVector

DEFAULT_GANG_TIMEOUT_SECONDS = 600.0
"""Koordinator CoschedulingArgs.defaultTimeout."""


class WorkloadKind(StrEnum):
    """What a workload is made of."""

    GANG = "gang"
    POD = "pod"


class WorkloadId(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """A workload's identity: a lone pod, a gang, or all gangs of a group, by their sorted keys (`namespace/name`)."""

    kind: WorkloadKind
    keys: tuple[str, ...]

    @classmethod
    def pod(cls, key: str) -> WorkloadId:
        """A pod that is in no gang."""
        return cls(WorkloadKind.POD, (key,))

    @classmethod
    def gang(cls, *keys: str) -> WorkloadId:
        """A gang, or the gangs of a group, in any order."""
        return cls(WorkloadKind.GANG, keys if len(keys) == 1 else tuple(sorted(set(keys))))

    @property
    def gangs(self) -> tuple[str, ...]:
        """The keys of its gangs, none for a lone pod."""
        return self.keys if self.kind is WorkloadKind.GANG else ()

    @property
    def grouped(self) -> bool:
        """Whether it is several gangs."""
        return len(self.keys) > 1

    @property
    def name(self) -> str:
        """Its keys, joined by commas; for gangs this is Koordinator's group id."""
        return self.keys[0] if len(self.keys) == 1 else ",".join(self.keys)

    @property
    def text(self) -> str:
        """`pod/namespace/name`, or `gang/` and its name: the subject of decisions, logs and answers."""
        return self.kind + "/" + self.name


class GangMode(StrEnum):
    """Koordinator's gang mode; an illegal text counts as STRICT."""

    STRICT = "Strict"
    NON_STRICT = "NonStrict"


class MatchPolicy(StrEnum):
    """Which members count towards the minimum (Koordinator's gang match policy).

    ONLY_WAITING: those placed by this decision alone. WAITING_AND_RUNNING: those and the ones bound.
    ONCE_SATISFIED: as that, and after the minimum was met once no minimum holds any more.
    """

    ONLY_WAITING = "only-waiting"
    WAITING_AND_RUNNING = "waiting-and-running"
    ONCE_SATISFIED = "once-satisfied"


class GangSource(StrEnum):
    """Where a pod's gang is defined. UPSTREAM is scheduling.k8s.io's PodGroup, named by spec.schedulingGroup; VOLCANO
    that of scheduling.volcano.sh, named by an annotation; MAKER the object whose controller makes the pods; WORKLOAD
    Kueue's, of a job that waits whole.
    """

    POD_GROUP = "PodGroup"
    ANNOTATION = "annotation"
    UPSTREAM = "scheduling.k8s.io PodGroup"
    VOLCANO = "scheduling.volcano.sh PodGroup"
    MAKER = "maker"
    WORKLOAD = "Workload"


class GangPhase(StrEnum):
    """status.phase of a PodGroup (Koordinator's coscheduling); UNSET before anybody wrote one."""

    UNSET = ""
    PENDING = "Pending"
    PRE_SCHEDULING = "PreScheduling"
    SCHEDULING = "Scheduling"
    SCHEDULED = "Scheduled"
    RUNNING = "Running"
    FINISHED = "Finished"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    @property
    def ran(self) -> bool:
        """Whether a gang reaches it only with its minimum of members running or through."""
        return self in (GangPhase.RUNNING, GangPhase.FINISHED)

    @property
    def bound(self) -> bool:
        """Whether a gang reaches it only with its minimum of members bound."""
        return self is GangPhase.SCHEDULED or self.ran

    @property
    def begun(self) -> bool:
        """Whether placing the gang has begun."""
        return self not in (GangPhase.UNSET, GangPhase.PENDING, GangPhase.PRE_SCHEDULING)


class TopologyLevel(msgspec.Struct, frozen=True):
    """Members go into one domain of the node label `key`: `required`, or only where that is possible.

    The number of members in a domain is a multiple of `multiple`.
    """

    key: str
    required: bool
    multiple: int = 1


class GangSpec(msgspec.Struct, frozen=True):
    """How many members must be placed together; `problem` says why the definition cannot be used.

    `groups` are the keys of all gangs that go together with this one, itself included, sorted; empty: alone.
    `topology` is from the widest level to the narrowest. `priority` and `preemption_policy` are the gang's own word,
    None where its pods decide; `priority_class` is the name of the PriorityClass that it takes them from. `whole` gangs
    lose all their members to a preemption, or none. `tasks` are those of which it needs a minimum each, by name.
    `raises`: its priority counts where it is above that of its pods, too. It goes before others once it has waited for
    `wait_seconds`; 0: never. `live`: members that succeeded do not count, since the minimum is of those that are left.
    `queue_priority`: its priority counts in its queue alone, elsewhere as far as it is not above that of its pods.
    """

    min_member: int
    mode: GangMode = GangMode.STRICT
    timeout_seconds: float = DEFAULT_GANG_TIMEOUT_SECONDS
    problem: str = ""
    match: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    groups: tuple[str, ...] = ()
    topology: tuple[TopologyLevel, ...] = ()
    priority: int | None = None
    preemption_policy: PreemptionPolicy | None = None
    whole: bool = False
    priority_class: str = ""
    tasks: tuple[tuple[str, int], ...] = ()
    raises: bool = False
    wait_seconds: float = 0.0
    live: bool = False
    queue_priority: bool = False

    def priority_of(self, own: int) -> int:
        """At which a pod counts whose own priority is `own`.

        Nothing withholds a priority class from PodGroups, as a ResourceQuota of scope PriorityClass does from pods: so
        a gang lowers the priority of its pods, and raises it only where the operator says so.
        """
        if self.priority is None:
            return own
        return self.priority if self.raises else min(self.priority, own)


class GangMembership(msgspec.Struct, frozen=True):
    """A pod's own words about its gang; `spec` is None where a PodGroup object holds it."""

    namespace: str
    name: str
    source: GangSource
    spec: GangSpec | None = None

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class GangTimes(msgspec.Struct, frozen=True):
    """What a restart must know of a gang and cannot see from its pods; whole Unix seconds, 0 without.

    `partial_seconds`: since when it is bound, or being bound, without its minimum, and never had it.
    `whole_seconds`: by when its minimum ran first.
    """

    partial_seconds: float = 0.0
    whole_seconds: float = 0.0


class Gang(msgspec.Struct, frozen=True):
    """A PodGroup object translated; times are Unix seconds.

    `partial_seconds`: bound in part since then, and never whole before. `whole_seconds`: its minimum ran first by then.
    Both are the scheduler's own notes, 0 without one. `queue` is the one that it names, empty where its pods decide;
    `min_resources` is what its queue must have room for before it counts as admitted.
    """

    namespace: str
    name: str
    spec: GangSpec
    uid: str = ""
    phase: GangPhase = GangPhase.UNSET
    created_seconds: float = 0.0
    source: GangSource = GangSource.POD_GROUP
    partial_seconds: float = 0.0
    whole_seconds: float = 0.0
    queue: str = ""
    min_resources: ResourceVector = ResourceVector()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"


class PodSet(msgspec.Struct, frozen=True):
    """Pods of one workload with the same request; `uids` in the order in which they are placed.

    `gang` is the key of the gang they belong to, empty for a lone pod.
    """

    name: str
    uids: tuple[str, ...]
    request: ResourceVector
    gang: str = ""

    @property
    def count(self) -> int:
        return len(self.uids)


class Workload(msgspec.Struct, frozen=True):
    """`key` is `namespace/name` of the gang or pod; times are Unix seconds.

    `min_total` counts members that must end up placed, those already bound included; `bound` is how many are.
    A gang group is one workload: `gangs` holds (key, needed) of each gang, needed being how many of its waiting
    members must be placed at once; `topology` is from the widest level to the narrowest. `pod_priority` is that of its
    highest waiting pod where `priority` counts in its queue alone.
    """

    key: str
    queue: str
    priority: int
    pod_sets: tuple[PodSet, ...]
    min_total: int = 1
    bound: int = 0
    gang: GangSpec | None = None
    uid: str = ""
    created_seconds: float = 0.0
    eligible_seconds: float = 0.0
    deadline_seconds: float | None = None
    preemption_policy: PreemptionPolicy = PreemptionPolicy.LOWER
    topology: tuple[TopologyLevel, ...] = ()
    gangs: tuple[tuple[str, int], ...] = ()
    pod_priority: int | None = None

    @property
    def outer_priority(self) -> int:
        """What counts beside work that is not of its queue."""
        return self.priority if self.pod_priority is None else min(self.priority, self.pod_priority)

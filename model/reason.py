"""Reasons of decisions: one closed code per cause, and the one map from codes to sentences.

Codes are stable: they are labels of metrics, reasons of Kubernetes Events and fields on the wire.
"""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """A stable code; `words` turns it into a sentence fragment."""

    COMPUTED = "Computed"
    NODE_METRICS_MISSING = "NodeMetricsMissing"
    NODE_METRICS_STALE = "NodeMetricsStale"
    PODS_UNKNOWN = "PodsUnknown"
    PODS_STALE = "PodsStale"
    SETTINGS_UNREAD = "SettingsUnread"
    SETTINGS_DELETED = "SettingsDeleted"
    LENDING_ACTIVE = "LendingActive"
    LIMIT_NOT_APPLIED = "LimitNotApplied"
    LENDING_DISABLED = "LendingDisabled"
    FLEET_PAUSED = "FleetPaused"
    OBSERVING = "Observing"
    CEILING_NOT_POSSIBLE = "CeilingNotPossible"
    LIMIT_NOT_WRITTEN = "LimitNotWritten"
    LIMIT_NOT_KEPT = "LimitNotKept"
    STATE_NOT_SAVED = "StateNotSaved"
    CPUS_OFFLINE = "CpusOffline"
    POD_UNREADABLE = "PodUnreadable"
    LIMITS_IN_FORCE = "LimitsInForce"
    NOT_LISTENING = "NotListening"
    LISTENING = "Listening"
    SUPPRESSION_DISABLED = "SuppressionDisabled"
    CONFIGURATION_INVALID = "ConfigurationInvalid"
    NOT_ACTED_ON = "NotActedOn"

    QUOTA_RAISED = "QuotaRaised"
    QUOTA_LOWERED = "QuotaLowered"
    BELOW_DEADBAND = "BelowDeadband"
    BRAKE = "Brake"
    WINDOW_FILLING = "WindowFilling"
    WEIGHT_HELD = "WeightHeld"
    PERIOD_HELD = "PeriodHeld"
    FOREIGN_WRITER_LOOSENED = "ForeignWriterLoosened"
    FOREIGN_WRITER_TIGHTER = "ForeignWriterTighter"
    KNOB_UNREADABLE = "KnobUnreadable"
    CPUS_NARROWED = "CpusNarrowed"
    CPUS_WIDENED = "CpusWidened"
    CPUS_HELD = "CpusHeld"
    TOO_FEW_CPUS = "TooFewCpus"
    CPUS_KEPT_OFF = "CpusKeptOff"
    CPUS_GIVEN = "CpusGiven"
    CPUS_NOT_GIVEN = "CpusNotGiven"
    KNOB_RELEASED = "KnobReleased"
    KNOB_OF_OTHER_STRATEGY = "KnobOfOtherStrategy"
    IDLE_HELD = "IdleHeld"
    ONLINE_SUFFERING = "OnlineSuffering"
    ONLINE_RECOVERING = "OnlineRecovering"
    CUT_DOES_NOT_HELP = "CutDoesNotHelp"
    BATCH_RESOURCES = "BatchResources"
    CEILING_IS_TIGHTER = "CeilingIsTighter"
    IN_USE_ALREADY = "InUseAlready"
    MEMORY_ROOM = "MemoryRoom"
    PIDS_SHARE = "PidsShare"
    CGROUPS_LIMITED = "CgroupsLimited"
    MEMORY_QOS = "MemoryQos"
    CPU_QOS = "CpuQos"
    UCLAMP = "Uclamp"
    OOM_SCORE = "OomScore"
    CONTROLLER_ABSENT = "ControllerAbsent"
    KNOB_ABSENT = "KnobAbsent"
    CPU_BURST = "CpuBurst"
    QUOTA_BURST = "QuotaBurst"
    AGENT_SILENT = "AgentSilent"
    AGENT_NOT_RUNNING = "AgentNotRunning"
    NOTHING_IDLE = "NothingIdle"
    OFFER_NOT_BELIEVED = "OfferNotBelieved"

    BE_CPU_EVICT = "BECPUEvict"
    CPU_EVICT = "CPUEvict"
    CPU_ALLOCATABLE_EVICT = "CPUAllocatableEvict"
    BE_MEMORY_EVICT = "BEMemoryEvict"
    MEMORY_EVICT = "MemoryEvict"
    MEMORY_ALLOCATABLE_EVICT = "MemoryAllocatableEvict"
    MEMORY_LAST_RESORT = "MemoryLastResort"
    THRASHING = "Thrashing"
    WITHIN_THRESHOLD = "WithinThreshold"
    COOLDOWN = "Cooldown"
    EVICTION_PENDING = "EvictionPending"
    NO_VICTIM = "NoVictim"
    EVICTION_NOT_HELPFUL = "EvictionNotHelpful"
    SHRINKING = "Shrinking"
    SHRINK_EXHAUSTED = "ShrinkExhausted"
    SHRINK_UNSUPPORTED = "ShrinkUnsupported"
    NO_SWAP = "NoSwap"

    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    NODE_SELECTOR_MISMATCH = "NodeSelectorMismatch"
    TAINT_UNTOLERATED = "TaintUntolerated"
    PORT_IN_USE = "PortInUse"
    CLAIM_NOT_BOUND = "ClaimNotBound"
    VOLUME_UNREACHABLE = "VolumeUnreachable"
    SPREAD_UNSATISFIED = "SpreadUnsatisfied"
    AFFINITY_UNSATISFIED = "AffinityUnsatisfied"
    CPUS_NOT_BOUND = "CpusNotBound"
    NODE_TOO_BUSY = "NodeTooBusy"
    REQUEST_TOO_LARGE = "RequestTooLarge"
    INSUFFICIENT_BATCH = "InsufficientBatch"
    NO_BATCH_OFFERED = "NoBatchOffered"
    GANG_WAITING_FOR_MEMBERS = "GangWaitingForMembers"
    GANG_INVALID = "GangInvalid"
    GANG_NOT_FOUND = "GangNotFound"
    GANG_DOES_NOT_FIT = "GangDoesNotFit"
    GANG_TIMEOUT = "GangTimeout"
    GANG_RELEASED = "GangReleased"
    MEMBER_REJECTED = "MemberRejected"
    CONSTRAINT_NOT_SUPPORTED = "ConstraintNotSupported"
    BIND_FAILED = "BindFailed"
    SCHEDULER_ERROR = "SchedulerError"

    PREEMPTING = "Preempting"
    PREEMPTION_DISABLED = "PreemptionDisabled"
    PREEMPTION_POLICY_NEVER = "PreemptionPolicyNever"
    PREEMPTION_NOT_NEEDED = "PreemptionNotNeeded"
    PREEMPTION_IN_FLIGHT = "PreemptionInFlight"
    VICTIMS_TERMINATING = "VictimsTerminating"
    PREEMPTION_NO_VICTIMS = "NoVictims"
    PREEMPTION_NOT_HELPFUL = "PreemptionNotHelpful"
    PREEMPTION_TOO_MANY = "PreemptionTooMany"

    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_HELD = "QueueHeld"
    QUEUE_HAS_CHILDREN = "QueueHasChildren"
    QUEUE_INVALID = "QueueInvalid"
    QUEUE_REFUSES_JOB = "QueueRefusesJob"
    QUEUE_FULL = "QueueFull"
    QUEUE_ORDER = "QueueOrder"
    WAITING_FOR_PODS_READY = "WaitingForPodsReady"
    QUOTA_TOO_SMALL = "QuotaTooSmall"
    QUOTA_EXHAUSTED = "QuotaExhausted"
    RECLAIMING = "Reclaiming"

    PROFILE_APPLIED = "ProfileApplied"
    PROFILE_NOT_DRAWN = "ProfileNotDrawn"
    PROFILE_UNREADABLE = "ProfileUnreadable"
    NAMESPACE_UNKNOWN = "NamespaceUnknown"
    RESOURCES_LENT = "ResourcesLent"

    REASON_OF_ANOTHER_VERSION = "ReasonOfAnotherVersion"


_WORDS: dict[Reason, str] = {
    Reason.COMPUTED: "computed from current facts",
    Reason.NODE_METRICS_MISSING: "no usage of the node is known yet",
    Reason.NODE_METRICS_STALE: "the node's usage was measured too long ago",
    Reason.PODS_UNKNOWN: "the pods of the node are not known",
    Reason.PODS_STALE: "the API server has been silent about the node's pods for too long",
    Reason.SETTINGS_UNREAD: "the cluster's settings were not read yet",
    Reason.SETTINGS_DELETED: "the cluster's settings were deleted: nothing more is lent until they are back",
    Reason.LENDING_ACTIVE: "idle CPU and memory of online services are lent to batch pods",
    Reason.LIMIT_NOT_APPLIED: "a limit of a pod was refused; lending goes on",
    Reason.LENDING_DISABLED: "lending is switched off",
    Reason.FLEET_PAUSED: "lending is paused on all nodes",
    Reason.OBSERVING: "the agent of this node observes and lends nothing",
    Reason.CEILING_NOT_POSSIBLE: "best effort's CPU ceiling cannot be held: no more is lent than running pods request",
    Reason.LIMIT_NOT_WRITTEN: "a limit of best effort cannot be written: no more is lent than running pods request",
    Reason.LIMIT_NOT_KEPT: "somebody else loosens a limit of best effort: no more is lent than running pods request",
    Reason.STATE_NOT_SAVED: "the state file cannot be kept: no more is lent than running pods request",
    Reason.CPUS_OFFLINE: "CPUs that the Node object has are offline: no more is lent than running pods request",
    Reason.POD_UNREADABLE: "a pod of the node cannot be read: no more is lent than running pods request",
    Reason.LIMITS_IN_FORCE: "every limit of best effort is in force again",
    Reason.NOT_LISTENING: "a port cannot be listened on: the agent works on without it, and tries again",
    Reason.LISTENING: "the port is listened on after all",
    Reason.SUPPRESSION_DISABLED: "suppression is switched off: no ceiling of ours is in force",
    Reason.CONFIGURATION_INVALID: "a settings document is invalid or not read yet; the last good ones stay in force",
    Reason.NOT_ACTED_ON: "not acted on, or in part (docs/koordinator.md)",
    Reason.QUOTA_RAISED: "more room is left: the ceiling rises by a step",
    Reason.QUOTA_LOWERED: "less room is left: the ceiling falls at once",
    Reason.BELOW_DEADBAND: "the change is too small to be worth a write",
    Reason.BRAKE: "online services surged: the brake cut the ceiling between two ticks",
    Reason.WINDOW_FILLING: "the live window is not full yet: nothing is raised",
    Reason.PERIOD_HELD: "the period is the one the ceiling is counted in",
    Reason.WEIGHT_HELD: "best-effort weight stays at the kernel's minimum",
    Reason.FOREIGN_WRITER_LOOSENED: "the kernel held another value: ours is written",
    Reason.FOREIGN_WRITER_TIGHTER: "somebody else set a tighter value: it is left alone until they write a looser one",
    Reason.KNOB_UNREADABLE: "the control file cannot be read",
    Reason.CPUS_NARROWED: "less room is left: best effort gets fewer CPUs at once",
    Reason.CPUS_WIDENED: "more room is left: best effort gets more CPUs by a step",
    Reason.CPUS_HELD: "best effort keeps its CPUs",
    Reason.CPUS_KEPT_OFF: "best effort keeps off the CPUs of LSE pods",
    Reason.CPUS_GIVEN: "the pod has these CPUs for itself",
    Reason.CPUS_NOT_GIVEN: "the pod does not have all of the CPUs that the scheduler gave it",
    Reason.TOO_FEW_CPUS: "fewer CPUs may be used than the load leaves room for: best effort gets those",
    Reason.KNOB_RELEASED: "no strategy in force uses this file: it holds again what it held before us",
    Reason.KNOB_OF_OTHER_STRATEGY: "another strategy owns this control file: only what that one wants is written",
    Reason.IDLE_HELD: "best effort runs only where nobody else wants to, by setting",
    Reason.ONLINE_SUFFERING: "online pods or the node's services wait for CPU: best effort is cut at once",
    Reason.ONLINE_RECOVERING: "online pods waited for CPU until a moment ago: nothing is raised yet",
    Reason.CUT_DOES_NOT_HELP: "online pods or the node's services wait whatever best effort gets: the cut ends",
    Reason.BATCH_RESOURCES: "from the batch resources the pod asked for",
    Reason.CEILING_IS_TIGHTER: "the best-effort root's ceiling is tighter, and this kernel wants no more below it",
    Reason.IN_USE_ALREADY: "more is in use already: the limit comes down with it, nothing is killed for it",
    Reason.MEMORY_ROOM: "best effort may grow until the node's memory reaches its threshold",
    Reason.CGROUPS_LIMITED: "so many cgroups below a batch pod's: what the kernel needs for them is charged to nobody",
    Reason.PIDS_SHARE: "a share of the processes and threads there may be: a fork bomb leaves the rest to others",
    Reason.MEMORY_QOS: "from the memory QoS of the pods' classes, or a pod's own",
    Reason.CPU_QOS: "from the CPU QoS of the pods' classes, or a pod's own",
    Reason.UCLAMP: "from the agent's utilization clamps of the pods' classes",
    Reason.OOM_SCORE: "whom the kernel kills first when memory runs out, by the pod's own words",
    Reason.CONTROLLER_ABSENT: "the control file's controller is not enabled here: nothing is limited by it",
    Reason.KNOB_ABSENT: "this kernel has no such control file: the setting does nothing here",
    Reason.CPU_BURST: "an online container may spend later what it left of its CPU limit",
    Reason.QUOTA_BURST: "an online container was throttled while shared CPUs are idle: it gets more for a while",
    Reason.AGENT_SILENT: "the agent is silent: best effort is held at a fixed share",
    Reason.AGENT_NOT_RUNNING: "the node's agent is not running, or cannot be reached: look for its pod and its log",
    Reason.OFFER_NOT_BELIEVED: "the node offers more than it has: such an amount counts as 0 for the scheduler",
    Reason.NOTHING_IDLE: "nothing is idle on the node beyond its margin",
    Reason.BE_CPU_EVICT: "best effort gets too little of the CPU it asked for",
    Reason.CPU_EVICT: "the node uses too much CPU",
    Reason.CPU_ALLOCATABLE_EVICT: "pods asked for more CPU than is lent",
    Reason.BE_MEMORY_EVICT: "the node uses too much memory",
    Reason.MEMORY_EVICT: "the node uses too much memory",
    Reason.MEMORY_ALLOCATABLE_EVICT: "pods asked for more memory than is lent",
    Reason.MEMORY_LAST_RESORT: "memory was about to run out: killed on the spot, before the kernel chose a victim",
    Reason.THRASHING: "online pods read back what the shortage took from them: memory cannot wait",
    Reason.WITHIN_THRESHOLD: "within its threshold",
    Reason.COOLDOWN: "the eviction before is too recent",
    Reason.EVICTION_PENDING: "what is being evicted frees enough",
    Reason.NO_VICTIM: "no pod that may be evicted frees what is missing",
    Reason.EVICTION_NOT_HELPFUL: "all pods that may be evicted free too little of what is missing, so none is",
    Reason.SHRINKING: "cold memory of best-effort pods is reclaimed first",
    Reason.SHRINK_EXHAUSTED: "no best-effort pod gives memory back without losing what it uses",
    Reason.SHRINK_UNSUPPORTED: "this kernel reclaims no memory of single pods (memory.reclaim: cgroup v2, Linux 5.19)",
    Reason.NO_SWAP: "no swap is free, so that reclaim frees nothing of what is in use",
    Reason.SCHEDULED: "placed",
    Reason.UNSCHEDULABLE: "no node fits",
    Reason.NODE_SELECTOR_MISMATCH: "no node has the labels that the pod selects",
    Reason.TAINT_UNTOLERATED: "every node it may go to has a taint that the pod does not tolerate",
    Reason.PORT_IN_USE: "a host port of the pod is taken on every node it may go to",
    Reason.CLAIM_NOT_BOUND: "a volume claim of the pod is missing or not bound yet",
    Reason.VOLUME_UNREACHABLE: "no node with room reaches the pod's volumes",
    Reason.SPREAD_UNSATISFIED: "every node with room would make the pods' spread more uneven than allowed",
    Reason.AFFINITY_UNSATISFIED: "affinity or anti-affinity between pods keeps it from every node with room",
    Reason.CPUS_NOT_BOUND: "no node with room has the whole CPUs free that the pod asks to have for itself",
    Reason.NODE_TOO_BUSY: "every node with room is too busy: its measured load is above the threshold",
    Reason.REQUEST_TOO_LARGE: "the pod asks for more than any node it may go to has, however idle",
    Reason.INSUFFICIENT_BATCH: "less is lent at this moment than the pod asks for",
    Reason.NO_BATCH_OFFERED: "no node it may go to offers batch resources: ask `sublet explain node` why",
    Reason.GANG_WAITING_FOR_MEMBERS: "the gang has fewer pods than its minimum",
    Reason.GANG_INVALID: "the gang's own definition is invalid",
    Reason.GANG_NOT_FOUND: "the PodGroup named by the pod does not exist",
    Reason.GANG_DOES_NOT_FIT: "not all needed members of the gang fit at once",
    Reason.GANG_TIMEOUT: "the gang found no place within its timeout: it gives up its room and waits again",
    Reason.GANG_RELEASED: "the gang was bound in part and could not be completed: it gives its room back",
    Reason.MEMBER_REJECTED: "the kubelet rejected a bound member: the gang is tried again as a whole",
    Reason.CONSTRAINT_NOT_SUPPORTED: "the pod asks for a constraint this scheduler does not know, so it is not placed",
    Reason.BIND_FAILED: "the API server refused the binding",
    Reason.SCHEDULER_ERROR: "an error of the scheduler itself: the workload is set aside",
    Reason.PREEMPTING: "room is made by evicting pods of lower priority",
    Reason.PREEMPTION_DISABLED: "preemption is switched off",
    Reason.PREEMPTION_POLICY_NEVER: "its preemption policy, or that of one of its waiting pods, is Never",
    Reason.PREEMPTION_NOT_NEEDED: "its minimum is met: nobody is evicted for members above it",
    Reason.PREEMPTION_IN_FLIGHT: "room is being made for it already",
    Reason.VICTIMS_TERMINATING: "pods evicted for it are still terminating",
    Reason.PREEMPTION_NO_VICTIMS: "no pod may be evicted for it",
    Reason.PREEMPTION_NOT_HELPFUL: "it would not fit even without every pod that may be evicted, so none is",
    Reason.PREEMPTION_TOO_MANY: "more pods would have to go than one plan may evict",
    Reason.QUEUE_NOT_FOUND: "the queue it names does not exist",
    Reason.QUEUE_CLOSED: "its queue is closed: it takes no work",
    Reason.QUEUE_HELD: "its queue is on hold: what waits there is not placed",
    Reason.QUEUE_HAS_CHILDREN: "the queue it names has queues below it, and only those take work",
    Reason.QUEUE_INVALID: "its queue, or one above it, cannot be used as it is written",
    Reason.QUEUE_REFUSES_JOB: "its queue takes no such job",
    Reason.QUEUE_FULL: "its queue, or one above it, has as many jobs as it may have",
    Reason.QUEUE_ORDER: "it waits behind the first of its queue, which takes strictly one after the other",
    Reason.WAITING_FOR_PODS_READY: "another job was admitted whose pods are not all ready yet",
    Reason.QUOTA_TOO_SMALL: "it asks for more than its queue may ever have",
    Reason.QUOTA_EXHAUSTED: "its queue may have no more at this moment",
    Reason.RECLAIMING: "its queue takes back what others borrowed",
    Reason.PROFILE_APPLIED: "the profile selects the pod and was applied",
    Reason.PROFILE_NOT_DRAWN: "the profile selects the pod, which was not drawn for its share",
    Reason.PROFILE_UNREADABLE: "the profile cannot be read, so it is applied to no pod",
    Reason.NAMESPACE_UNKNOWN: "the pod's namespace is not known yet, so no selector matches it",
    Reason.RESOURCES_LENT: "cpu and memory became lent resources",
    Reason.REASON_OF_ANOTHER_VERSION: "decided by a program of another version, for a reason this one does not know",
}


def words(reason: Reason) -> str:
    """The sentence fragment for a code."""
    return _WORDS[reason]


class Stage(StrEnum):
    """ADMISSION: may it be tried at all. QUOTA: may its queue have so much. ORDER: is it its turn. PLACEMENT: do nodes
    fit. PLACED: it has passed them all.
    """

    ADMISSION = "admission"
    QUOTA = "quota"
    ORDER = "order"
    PLACEMENT = "placement"
    PLACED = "placed"


_ADMISSION = frozenset(
    {
        Reason.QUEUE_NOT_FOUND,
        Reason.QUEUE_CLOSED,
        Reason.QUEUE_HELD,
        Reason.QUEUE_HAS_CHILDREN,
        Reason.QUEUE_INVALID,
        Reason.QUEUE_REFUSES_JOB,
        Reason.QUEUE_FULL,
        Reason.WAITING_FOR_PODS_READY,
        Reason.GANG_WAITING_FOR_MEMBERS,
        Reason.GANG_INVALID,
        Reason.GANG_NOT_FOUND,
        Reason.CONSTRAINT_NOT_SUPPORTED,
    }
)
_QUOTA = frozenset({Reason.QUOTA_TOO_SMALL, Reason.QUOTA_EXHAUSTED, Reason.RECLAIMING})
_OTHERS = {Reason.QUEUE_ORDER: Stage.ORDER, Reason.SCHEDULED: Stage.PLACED}


def stage_of(reason: Reason) -> Stage:
    """The stage in which a decision of that reason leaves its workload."""
    if reason in _ADMISSION:
        return Stage.ADMISSION
    return Stage.QUOTA if reason in _QUOTA else _OTHERS.get(reason, Stage.PLACEMENT)

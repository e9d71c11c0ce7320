"""All limits of one tick: one for each control file, what the brake may do until the next, what to remember."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from agent.core.limit.allowance import US_PER_MILLI, Demand, NodeSize, by_cgroups, by_pods, left_beside, within_requests
from agent.core.limit.brake import BrakePlan
from agent.core.limit.burst_tokens import shared_pool
from agent.core.limit.compose import Composed, composed
from agent.core.limit.cpu_burst import (
    BurstFacts,
    BurstMemory,
    burst_absent,
    burst_memory,
    bursts,
    bursts_to_read,
    cpu_bursts,
)
from agent.core.limit.cpu_lists import (
    CpuListMemory,
    CpuLists,
    children_to_read,
    cpu_lists,
    given_back,
    kept_off,
    may_widen,
    wants_cpus,
)
from agent.core.limit.cpu_qos.idle_weights import beside_idle, weights_of
from agent.core.limit.cpu_qos.values import clamps_of_pods, identity_and_idle, tier_clamps, tier_identities
from agent.core.limit.cpu_qos.wishes import CpuQosMemory, CpuWishes, cpu_qos_memory, ending, idle_knobs
from agent.core.limit.cpu_qos.wishes import knobs_to_read as cpu_tiers_to_read
from agent.core.limit.cpu_qos.wishes import pod_knobs as pod_cpu_knobs
from agent.core.limit.cpu_qos.wishes import tier_knobs as tier_cpu_knobs
from agent.core.limit.cpu_qos.wishes import wanted_pod_knobs as wanted_cpu_knobs
from agent.core.limit.cpu_qos.wishes import wishes as cpu_wishes
from agent.core.limit.cpu_selection import CpuSituation, exclusive_cpus, kept_off_limit, pools
from agent.core.limit.fixed_limits import fixed_limits
from agent.core.limit.knob_schedule import NO_GROUPS, KnobSchedule, PodGroups, due, scheduled
from agent.core.limit.memory_headroom import high_limit, memory_headroom, memory_marks, memory_signs
from agent.core.limit.memory_qos.oom_scores import oom_scores, score_knobs
from agent.core.limit.memory_qos.values import memory_qos_limits, tier_limits
from agent.core.limit.memory_qos.wishes import MemoryQosMemory, MemoryWishes, memory_qos_memory, wishes
from agent.core.limit.memory_qos.wishes import knobs_to_read as tiers_to_read
from agent.core.limit.memory_qos.wishes import pod_knobs as pod_memory_knobs
from agent.core.limit.memory_qos.wishes import tier_knobs as tier_memory_knobs
from agent.core.limit.number_limits.cgroup_limits import (
    pods_cgroups,
    pods_cgroups_to_read,
    root_cgroups,
    root_cgroups_to_read,
)
from agent.core.limit.number_limits.process_limits import (
    holds_pods_pids,
    is_absent,
    pods_pids,
    pods_pids_to_read,
    root_pids,
)
from agent.core.limit.online_stalls import OnlineStalls, StallFacts, StallMemory, online_stalls
from agent.core.limit.own_cpus import OwnCpuMemory, own_cpus, own_cpus_to_read, with_known_cpus
from agent.core.limit.ownership import QuotaCap, looser, ownership
from agent.core.limit.pod_limits import pod_knobs, pod_limits
from agent.core.limit.quota_burst import QuotaBurstMemory, quota_bursts, quotas_wanted
from agent.core.limit.release import KnobClaims, is_released, released, within_quota
from agent.core.limit.stall_relief import CutRange, Relief
from agent.core.limit.suppress import CpuCeiling, Situation, floor_us, quota_ceiling
from agent.core.limit.wanted_limit import Limit
from agent.core.limit.watch import LastResort, MemoryMark, MemorySigns, Watch
from agent.core.observe.exclusive_cpu import idle_millis
from agent.core.observe.files import Watched
from agent.core.observe.knob_table import TABLE, Strategy, owner_of
from agent.core.observe.knobs import (
    CPU_QOS_FILES,
    CPUSET_FILE,
    IDLE_FILE,
    PERIOD_FILE,
    PERIOD_US,
    UNLIMITED,
    VENDOR_MEMORY_FILES,
    FixedKnob,
    RootKnobs,
    is_burst,
    is_v1_quota,
    quota_of,
)
from agent.core.observe.layout import Layout
from agent.core.observe.observation import CgroupSample, Knob, Missing, NodeSample, Observation, Places, PodPlace
from agent.core.observe.usage import NodeUsage, best_effort_limit_millis
from model.decision import Decision, Unit
from model.pod.pod import Pod
from model.qos import CpuQosStrategy, MemoryQosStrategy, UclampStrategy
from model.reason import Reason
from model.resources import CPU
from model.strategy import BurstStrategy, EvictionStrategy, HostApplication, SuppressPolicy, SuppressStrategy
from model.topology import KubeletPolicy, PodCpus, Processor

_RAISE_REST_SECONDS = 5.0
"""After a cut by the brake nothing is raised for this long."""
_BRAKE_DEADBAND_PCT = 5
_STEADY_BRAKE_DEADBAND_PCT = 10
"""The brake acts from so much of the node on, smaller changes wait for the tick; the larger where weight protects: over
200 ms a service's requests come and go by several percent."""
_BATCH_FILES = frozenset(row.file for row in TABLE if Strategy.BATCH_RESOURCES in row.owners.values())
_OF_CLASSES = VENDOR_MEMORY_FILES | CPU_QOS_FILES
"""Of the best-effort root what tells classes apart, and holds nothing back."""
_NO_CEILING = Decision("cgroup", "", 0, Unit.MICROSECONDS, Reason.KNOB_UNREADABLE, ())


class LimitFacts(msgspec.Struct, frozen=True):
    """What limits depend on beside the observation; `pods` is None until they were listed.

    `reserved_millis` is what the Node's annotation keeps free, `raw_allocatable_millis` what was allocatable before
    amplification, None without it, `kubelet_policy` whether the kubelet gives CPUs away, `given_away` which beside the
    `processors` that all share; best effort never gets `reserved_cpus` nor `system_cpus`. `unsettled` is why the
    settings in force may be looser than those of a document that could not be read or was deleted; None: they are not.
    """

    suppress: SuppressStrategy
    eviction: EvictionStrategy
    pods: tuple[Pod, ...] | None
    processors: tuple[Processor, ...] = ()
    given_away: tuple[PodCpus, ...] = ()
    kubelet_policy: KubeletPolicy = KubeletPolicy.NONE
    reserved_cpus: tuple[int, ...] = ()
    system_cpus: tuple[int, ...] = ()
    normalization_ratio: float | None = None
    unsettled: Reason | None = None
    reserved_millis: int = 0
    raw_allocatable_millis: int | None = None
    host_applications: tuple[HostApplication, ...] = ()
    burst: BurstStrategy = BurstStrategy()
    memory_qos: MemoryQosStrategy = MemoryQosStrategy()
    cpu_qos: CpuQosStrategy = CpuQosStrategy()
    uclamp: UclampStrategy = UclampStrategy()
    oom_scores: bool = False


class OnlineCpus(msgspec.Struct, frozen=True):
    """The most that were seen or are in the machine; how many of them are `lost` now that the Node object still has."""

    most: int = 0
    lost: int = 0

    def after(self, observation: Observation) -> OnlineCpus:
        """A Node object may overstate its machine on purpose: what was never there is not lost."""
        if not isinstance(observation.node_sample, NodeSample):
            return self
        online = observation.node_sample.cpus
        most = max(self.most, online, observation.node_sample.present_cpus)
        had = most if observation.node is None else min(most, observation.node.capacity[CPU] // 1000)
        return OnlineCpus(most, max(had - online, 0))


class LimitMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before.

    The quota's foreign cap, the node's size, the brake's plan, the time; stalls and what was cut for them, CPU lists,
    and control files in general; whether single pods' processes could be limited; CPUs that went offline; bursts, and
    quotas raised; QoS of memory and CPU; whether files of pods were given back, so that more may be left; and the CPUs
    of LSE and LSR pods.
    """

    quota: QuotaCap = QuotaCap()
    size: NodeSize | None = None
    brake: BrakePlan | None = None
    monotonic_seconds: float = 0.0
    stalls: StallMemory = StallMemory()
    cpu_lists: CpuListMemory = CpuListMemory()
    knob_schedule: KnobSchedule = KnobSchedule()
    counts_pids: bool = True
    cpus: OnlineCpus = OnlineCpus()
    bursts: BurstMemory = BurstMemory()
    quota_bursts: QuotaBurstMemory = QuotaBurstMemory()
    memory_qos: MemoryQosMemory = MemoryQosMemory()
    cpu_qos: CpuQosMemory = CpuQosMemory()
    releasing: bool = False
    own_cpus: OwnCpuMemory = OwnCpuMemory()

    @property
    def watched(self) -> Watched:
        """Pods that the brake listens to, and containers whose quota may be raised."""
        return Watched(self.stalls.heard, self.quota_bursts.tokens)


class NodeLimits(msgspec.Struct, frozen=True):
    """What was decided; `brake` is None where there is nothing to defend.

    `online` are the cgroups whose waiting for CPU tells of stalls, `ceiling` is the decision that holds best
    effort's CPU. `best_effort_millis` is what the kernel let it use before that, None where it cannot be told. `root`
    is best effort's cgroup; `limited_pods` counts those with limits from their batch resources. `lost_cpus` are
    offline, and the Node object still has them. `refused` were asked for by strategies that do not own the file.
    `absent_files` are wanted, and this kernel does not have them.
    """

    limits: Mapping[Knob, Limit]
    brake: BrakePlan | None
    online: tuple[str, ...] = ()
    stall_pct: int = 0
    memory_marks: tuple[MemoryMark, ...] = ()
    best_effort_millis: int | None = None
    ceiling: Decision = _NO_CEILING
    root: str = ""
    limited_pods: int = 0
    memory_signs: MemorySigns = MemorySigns()
    lost_cpus: int = 0
    refused: tuple[Limit, ...] = ()
    absent_files: tuple[str, ...] = ()
    layout: Layout = Layout()

    def owner(self, knob: Knob) -> Strategy | None:
        """The strategy that alone writes this file."""
        return owner_of(self.layout, knob)

    def watch(self, last_resort: LastResort | None) -> Watch:
        """What the brake's thread may do until the next tick."""
        return Watch(self.brake, self.memory_marks, last_resort, self.online, self.stall_pct, self.memory_signs)

    @property
    def of_all(self) -> tuple[Limit, ...]:
        """Those of best effort as a whole, not of single pods and containers."""
        return tuple(
            limit
            for limit in self.limits.values()
            if limit.knob.cgroup == self.root and limit.knob.file not in _OF_CLASSES
        )

    @property
    def not_given(self) -> tuple[Limit, ...]:
        """Of containers whose pod cannot have the CPUs that the scheduler gave it."""
        return tuple(limit for limit in self.limits.values() if limit.decision.reason is Reason.CPUS_NOT_GIVEN)

    @property
    def decisions(self) -> Mapping[Knob, Decision]:
        return {knob: limit.decision for knob, limit in self.limits.items()}


class _Scene(msgspec.Struct, frozen=True):
    """Everything one tick decides from."""

    memory: LimitMemory
    layout: Layout
    knobs: RootKnobs
    observation: Observation
    usage: NodeUsage | None
    facts: LimitFacts
    size: NodeSize | None

    @property
    def pods(self) -> tuple[Pod, ...]:
        return self.facts.pods or ()

    @property
    def quota_us(self) -> int | None:
        """What the kernel holds, None where it cannot be read."""
        kernel = self.observation.knobs[self.knobs.quota].kernel
        return kernel if isinstance(kernel, int) else None


def pod_groups(known: PodGroups, memory: LimitMemory, layout: Layout, places: Places, facts: LimitFacts) -> PodGroups:
    """The control files of each pod that limits may speak of; the `known` ones while nothing they depend on changed."""
    qos, cpu_qos = _wishes(memory, facts), _cpu_wishes(memory, facts)
    pods, suppress, seen = facts.pods or (), facts.suppress, memory.memory_qos.seen
    counts = holds_pods_pids(suppress) and memory.counts_pids
    cpu_about = (cpu_qos, memory.cpu_qos.seen, memory.cpu_qos.idle)
    about = (layout, places, facts.pods, suppress, facts.oom_scores, counts, qos, seen, *cpu_about)
    if about == known.about:
        # With these very objects, which are equal to themselves at no cost.
        return PodGroups(about, known.groups)
    groups = (
        (
            *pod_knobs(layout, places, (pod,)),
            *pods_pids_to_read(layout, places, (pod,) if counts else ()),
            *pods_cgroups_to_read(layout, places, (pod,), suppress),
            *(knob for knob in pod_memory_knobs(qos, layout, places, pod) if memory.memory_qos.has(knob.file)),
            *pod_cpu_knobs(memory.cpu_qos, cpu_qos, layout, places, pod),
            *score_knobs(layout, places, pod, on=facts.oom_scores),
        )
        for pod in pods
    )
    return PodGroups(about, tuple(groups))


def knobs_to_read(
    memory: LimitMemory, layout: Layout, places: Places, facts: LimitFacts, groups: PodGroups | None = None
) -> tuple[Knob, ...]:
    """What the next decision must know of the kernel: the best-effort root, and what is due below it.

    `groups` are the `pod_groups` of the same facts, None: they are named here.
    """
    known = with_known_cpus(memory.own_cpus, facts.pods)[1] or ()
    lists_wanted = wants_cpus(facts.suppress) or bool(exclusive_cpus(known))
    lists = children_to_read(memory.cpu_lists, layout, places, lists_wanted)
    own = own_cpus_to_read(layout, places, known)
    qos, cpu_qos = _wishes(memory, facts), _cpu_wishes(memory, facts)
    groups = groups or pod_groups(NO_GROUPS, memory, layout, places, facts)
    of_pods = due(memory.knob_schedule, groups.groups, _last_ceiling_us(memory))
    about = _burst_facts(layout, facts)
    burst_files = bursts_to_read(memory.bursts, memory.knob_schedule, about, places)
    quotas = quotas_wanted(memory.quota_bursts, about, places)
    tiers = (*tiers_to_read(memory.memory_qos, qos, layout), *cpu_tiers_to_read(memory.cpu_qos, cpu_qos, layout))
    ends = (knob for pod in ending(memory.cpu_qos, cpu_qos, facts.pods) for knob in idle_knobs(layout, places, pod))
    no_longer_idle = weights_of(layout, (knob.cgroup for knob in ends))
    of_root = (*RootKnobs.of(layout).all, *root_cgroups_to_read(layout, facts.suppress))
    each_tick = (*of_root, *lists, *own, *dict.fromkeys((*tiers, *no_longer_idle)))
    return (*each_tick, *of_pods, *dict.fromkeys((*burst_files, *quotas)))


def _last_ceiling_us(memory: LimitMemory) -> int:
    """What best effort could use at most: its ceiling, else all CPUs; unlimited where neither is known."""
    if memory.brake is not None and memory.brake.ceiling_us != UNLIMITED:
        return memory.brake.ceiling_us
    return UNLIMITED if memory.size is None else memory.size.capacity_millis * US_PER_MILLI


def claims_due(memory: LimitMemory, layout: Layout, places: Places, facts: LimitFacts) -> KnobClaims | None:
    """What strategies want, for whoever knows which files hold values of ours; in one tick of ten, and while files are
    given back."""
    looks = memory.releasing or memory.knob_schedule.turn == 0
    return _claims(memory, layout, places, facts) if looks else None


def _claims(memory: LimitMemory, layout: Layout, places: Places, facts: LimitFacts) -> KnobClaims | None:
    """Of the roots, and of pods that are listed and run; None while it is unknown what is wanted."""
    if facts.pods is None or facts.unsettled:
        return None
    running = [pod for pod in facts.pods if pod.uid in places.pods and not pod.terminal]
    cgroups = {layout.root, layout.burstable, layout.best_effort}
    for pod in running:
        place = places.pods[pod.uid]
        cgroups.update((place.path, *place.containers.values()))
    pids = pods_pids_to_read(layout, places, running) if holds_pods_pids(facts.suppress) else ()
    about, qos = _burst_facts(layout, facts), _wishes(memory, facts)
    of_online = (*bursts(about, places), *quotas_wanted(memory.quota_bursts, about, places))
    of_memory = (
        *(knob for pod in running for knob in score_knobs(layout, places, pod, on=facts.oom_scores)),
        *tier_memory_knobs(qos, layout),
        *(knob for pod in running for knob in pod_memory_knobs(qos, layout, places, pod)),
    )
    cpu_qos = _cpu_wishes(memory, facts)
    of_cpu = (
        *tier_cpu_knobs(cpu_qos, layout),
        *(knob for pod in running for knob in wanted_cpu_knobs(cpu_qos, layout, places, pod)),
    )
    # Files of the best-effort root are read each tick; those of batch resources stay whatever is wanted.
    suppress = facts.suppress
    cgroups_below = (
        *root_cgroups_to_read(layout, suppress),
        *pods_cgroups_to_read(layout, places, running, suppress),
    )
    wanted = frozenset((*RootKnobs.of(layout).all, *pids, *cgroups_below, *of_online, *of_memory, *of_cpu))
    return KnobClaims(layout, wanted, frozenset(cgroups))


def decide_limits(
    memory: LimitMemory, layout: Layout, observation: Observation, usage: NodeUsage | None, facts: LimitFacts
) -> tuple[LimitMemory, NodeLimits]:
    """Every limit of this tick, and the brake's plan until the next.

    `observation.knobs` holds what `knobs_to_read` named. Neither a missing Node object nor a tick without usage disarms
    the brake: it goes on with the last size and plan it knew.
    """
    known_cpus, pods = with_known_cpus(memory.own_cpus, facts.pods)
    facts = msgspec.structs.replace(facts, pods=pods)
    online = memory.cpus.after(observation)
    size = _size(observation, memory.size, facts, online.lost)
    scene = _Scene(memory, layout, RootKnobs.of(layout), observation, usage, facts, size)
    stalls_after, stalls = online_stalls(memory.stalls, observation, usage, _stall_facts(scene))
    remembered, situation = _situation(scene, stalls.relief)
    lists_after, cpus = _cpus(scene, situation)
    quota = quota_ceiling(
        scene.knobs.quota, msgspec.structs.replace(situation, cpuset_in_force=cpus.in_force, cpuset_failed=cpus.failed)
    )
    schedule, below, refused = _below(scene, cpus, quota.decision.value)
    raised_after, raised = _raised(scene)
    own = composed(layout, {**_of_root_alone(scene, quota), Strategy.CPU_BURST: raised})
    wanted = {**{limit.knob: limit for limit in own.limits}, **burst_absent(layout, observation), **below}
    memory_qos = memory_qos_memory(memory.memory_qos, _wishes(memory, facts), layout, observation)
    cpu_qos = cpu_qos_memory(memory.cpu_qos, _cpu_wishes(memory, facts), layout, observation)
    given_up = _released(scene, wanted)
    limits = {**wanted, **given_up}
    brake = _brake_plan(scene, quota, cpus.ceiling, stalls, below) if facts.suppress.enable else None
    counts_pids = observation.pids is not None and not is_absent(below.get(scene.knobs.pids))
    at = observation.monotonic_seconds
    after = LimitMemory(
        quota=remembered,
        size=scene.size,
        brake=brake,
        monotonic_seconds=at,
        stalls=stalls_after,
        cpu_lists=lists_after,
        knob_schedule=schedule,
        counts_pids=counts_pids,
        cpus=online,
        bursts=burst_memory(layout, observation),
        quota_bursts=raised_after,
        memory_qos=memory_qos,
        cpu_qos=cpu_qos,
        releasing=any(knob.cgroup != layout.best_effort for knob in given_up),
        own_cpus=known_cpus,
    )
    return after, NodeLimits(
        limits=limits,
        brake=brake,
        online=stalls.online,
        stall_pct=facts.suppress.online_stall_pct or 0,
        memory_marks=memory_marks(layout, observation, facts.eviction),
        best_effort_millis=_may_use(scene, situation),
        ceiling=_of_both(cpus.ceiling, quota).decision,
        root=layout.best_effort,
        limited_pods=_limited_pods(layout, observation.places, below),
        memory_signs=memory_signs(observation, facts.eviction),
        lost_cpus=online.lost,
        refused=(*own.refused, *refused),
        absent_files=(*memory_qos.absent, *cpu_qos.absent),
        layout=layout,
    )


def _size(observation: Observation, last: NodeSize | None, facts: LimitFacts, lost_cpus: int) -> NodeSize | None:
    """The node object's words, less CPUs that it lost, else what it said last, else the CPUs this kernel shows."""
    if observation.node is not None and observation.node.capacity[CPU] > 0:
        kept = max(facts.reserved_millis, observation.barred[CPU])
        size = NodeSize.of(observation.node, kept, facts.raw_allocatable_millis)
        return msgspec.structs.replace(size, capacity_millis=size.capacity_millis - lost_cpus * 1000)
    if last is None and isinstance(observation.node_sample, NodeSample):
        return NodeSize(observation.node_sample.cpus * 1000, observation.barred[CPU])
    return last


def _stall_facts(scene: _Scene) -> StallFacts:
    usage, size, cut_range = scene.usage, scene.size, None
    if usage is not None and size is not None:
        used_us = usage.best_effort.last.cpu_millis * US_PER_MILLI
        cut_range = CutRange(used_us, floor_us(size, scene.facts.suppress), size.capacity_millis * US_PER_MILLI)
    return StallFacts(scene.layout, scene.facts.suppress, scene.facts.pods, cut_range, _cut_for_waiting(scene))


def _cut_for_waiting(scene: _Scene) -> int | None:
    """What the brake cut to since the last tick, where that is the value prepared for pods that wait."""
    plan, cut = scene.memory.brake, scene.observation.last_cut_monotonic
    if plan is None or plan.suffering_us is None or cut is None or cut <= scene.memory.monotonic_seconds:
        return None
    prepared = max(plan.suffering_us, plan.floor_us)
    return prepared if scene.quota_us == prepared else None


def _situation(scene: _Scene, relief: Relief) -> tuple[QuotaCap, Situation]:
    observation, usage, reading = scene.observation, scene.usage, scene.observation.knobs[scene.knobs.quota]
    remembered, stand = ownership(reading, scene.memory.quota)
    elapsed = observation.monotonic_seconds - scene.memory.monotonic_seconds
    demand, unknown = _demand(scene)
    return remembered, Situation(
        strategy=scene.facts.suppress,
        ownership=msgspec.structs.replace(
            stand, braked=_braked(observation), unsettled=scene.facts.unsettled, elapsed_seconds=elapsed
        ),
        at_seconds=usage.at_seconds if usage and demand else observation.at_seconds,
        size=scene.size,
        demand=demand,
        window_full=usage is not None and usage.live_window_full,
        relief=relief,
        released=reading.original if isinstance(reading.original, int) else UNLIMITED,
        period_lost=any(_is_lost(held, observation) for held in scene.knobs.fixed if held.knob.file == PERIOD_FILE),
        unknown=unknown,
    )


def _is_lost(held: FixedKnob, observation: Observation) -> bool:
    """Somebody wrote another value, which this tick's write may not end. One that cannot be read says nothing."""
    kernel = observation.knobs[held.knob].kernel
    return not isinstance(kernel, Missing) and kernel != held.value


def _demand(scene: _Scene) -> tuple[Demand | None, Reason]:
    """What best effort must leave alone, None while that cannot be told, and then why."""
    usage, facts = scene.usage, scene.facts
    if usage is None:
        return None, Reason.NODE_METRICS_MISSING
    if facts.suppress.policy is not SuppressPolicy.ADAPTIVE and facts.pods is None:
        return None, Reason.PODS_UNKNOWN
    adaptive = facts.suppress.policy is SuppressPolicy.ADAPTIVE
    demand = by_cgroups(usage) if adaptive else by_pods(usage, scene.pods, facts.host_applications)
    # Below a quota of kubepods no weight protects: its online pods are throttled with the rest.
    if facts.suppress.weight_first and facts.pods is not None and scene.observation.pods_quota_millis is None:
        demand = within_requests(demand, usage, facts.pods)
    used = {uid: averages.last.cpu_millis for uid, averages in usage.pods.items()}
    # One that its kubelet has not admitted, and may refuse, keeps nobody's CPU.
    admitted = (pod for pod in scene.pods if pod.uid in used)
    return demand.beside(idle_millis(admitted, facts.kubelet_policy, used)), Reason.NODE_METRICS_MISSING


def _may_use(scene: _Scene, situation: Situation) -> int | None:
    """CPU that best effort may really use: what limits it, and what is left where no ceiling stands for that."""
    limit = best_effort_limit_millis(scene.observation.best_effort_cpus, scene.quota_us, PERIOD_US)
    if limit is None or situation.size is None or situation.demand is None:
        return limit
    left = left_beside(situation.size, situation.demand.now)
    floor = floor_us(situation.size, situation.strategy) // US_PER_MILLI
    return limit if left is None else min(limit, max(left, floor))


def _braked(observation: Observation) -> bool:
    cut = observation.last_cut_monotonic
    return cut is not None and observation.monotonic_seconds - cut < _RAISE_REST_SECONDS


def _cpus(scene: _Scene, situation: Situation) -> tuple[CpuListMemory, CpuLists]:
    facts, state, observation = scene.facts, scene.memory.cpu_lists, scene.observation
    kept_free = (*facts.reserved_cpus, *facts.system_cpus)
    usable = pools(facts.processors, kept_free, scene.pods) if facts.processors else None
    cap = dict(scene.memory.knob_schedule.caps).get(scene.knobs.cpuset)
    if not wants_cpus(facts.suppress):
        # While nothing has taken the lists' place they stand, and so they do while it is unknown who has CPUs.
        stand = facts.suppress.enable and not _quota_in_force(scene, situation)
        exclusive = exclusive_cpus(scene.pods)
        if facts.pods is None or (usable is None if exclusive else stand):
            return state, CpuLists()
        if not exclusive or usable is None:
            return given_back(state, scene.layout, observation)
        off = kept_off_limit(scene.knobs.cpuset, usable, _had(scene, now=stand), observation.at_seconds)
        return kept_off(state, scene.layout, observation, off, cap, scene.pods)
    about = CpuSituation(
        situation=situation,
        reading=observation.knobs[scene.knobs.cpuset],
        pools=usable,
        cpus=len(facts.processors),
        may_widen=may_widen(state, observation.monotonic_seconds),
    )
    return cpu_lists(state, scene.layout, observation, about, cap, scene.pods)


def _had(scene: _Scene, *, now: bool) -> str:
    """The CPU list that best effort has, or had before any of ours; empty where that is not known."""
    reading = scene.observation.knobs[scene.knobs.cpuset]
    text = reading.kernel if now or reading.original is None else reading.original
    return text if isinstance(text, str) else ""


def _quota_in_force(scene: _Scene, situation: Situation) -> bool:
    """The quota can be told, and the kernel holds it already, or less: a write that is yet to come may fail."""
    wanted, held = quota_ceiling(scene.knobs.quota, situation).decision.value, scene.quota_us
    return situation.known and held is not None and not looser(held, wanted)


def _of_root_alone(scene: _Scene, quota: CpuCeiling) -> dict[Strategy, Iterable[Limit]]:
    """Quota, weight and idle, which have rules of their own for other writers."""
    suppress, observation = scene.facts.suppress, scene.observation
    held = fixed_limits(scene.knobs, observation.knobs, suppress.enable and suppress.cpu_idle, observation.at_seconds)
    return {
        Strategy.CPU_SUPPRESS: (Limit(scene.knobs.quota, quota.decision.value, quota.decision),),
        Strategy.CPU_IDLE: [limit for limit in held if limit.knob.file == IDLE_FILE],
        Strategy.CPU_WEIGHT: [limit for limit in held if limit.knob.file != IDLE_FILE],
    }


def _released(scene: _Scene, wanted: Mapping[Knob, Limit]) -> dict[Knob, Limit]:
    """Files that were read, hold something of ours or did, and that nothing wants; none while that is in doubt."""
    observation, layout, facts = scene.observation, scene.layout, scene.facts
    left = [
        knob
        for knob, reading in observation.knobs.items()
        if reading.original is not None and knob not in wanted and is_released(layout, knob)
    ]
    if not left or facts.unsettled:
        return {}
    claims = _claims(scene.memory, layout, observation.places, facts)
    given_up = [knob for knob in left if knob in scene.knobs.all or (claims is not None and claims.leave(knob))]
    now = observation.at_seconds
    found = {limit.knob: limit for knob in given_up if (limit := released(knob, observation.knobs[knob], now))}
    for burst in filter(is_burst, found):
        quota = found.get(quota_of(burst)) or wanted.get(quota_of(burst))
        reading = observation.knobs.get(quota_of(burst))
        beside = quota.value if quota is not None else reading.kernel if reading is not None else None
        found[burst] = within_quota(found[burst], beside, now)
    return found


def _below(
    scene: _Scene, cpus: CpuLists, root_quota_us: int
) -> tuple[KnobSchedule, dict[Knob, Limit], tuple[Limit, ...]]:
    """CPU lists, memory of the root, and everything of single pods, as far as other writers leave it to us."""
    observation, layout = scene.observation, scene.layout
    # A CPU list and a raised quota are read whether the pod is due or not.
    raised = set(quotas_wanted(scene.memory.quota_bursts, _burst_facts(layout, scene.facts), observation.places))
    each = (knob for knob in observation.knobs if knob.file != CPUSET_FILE and knob not in raised)
    places, read = observation.places.pods, {knob.cgroup for knob in each}
    placed = [pod for pod in scene.pods if pod.uid in places and not pod.terminal]
    due_now, others = list[Pod](), list[PodPlace]()
    for pod in placed:
        place = places[pod.uid]
        if read.isdisjoint(_cgroups(place)):
            others.append(place)
        else:
            due_now.append(pod)
    ratio, in_use = scene.facts.normalization_ratio, _in_use(observation, due_now)
    batch = pod_limits(layout, observation.places, due_now, ratio, root_quota_us, in_use, observation.at_seconds)
    pids = pods_pids(layout, observation, due_now, scene.facts.suppress)
    saved_up = cpu_bursts(_burst_facts(layout, scene.facts), observation, due_now)
    of_cpu = tuple(identity_and_idle(layout, observation, _cpu_wishes(scene.memory, scene.facts)))
    beside = beside_idle(layout, observation, batch, of_cpu, may_end=not scene.facts.unsettled)
    of_pods = composed(
        layout,
        {
            Strategy.BATCH_RESOURCES: beside.limits.values(),
            Strategy.PROCESS_LIMITS: (
                *pids.values(),
                *pods_cgroups(layout, observation, due_now, scene.facts.suppress),
            ),
            Strategy.CPU_BURST: saved_up.values(),
            Strategy.MEMORY_QOS: memory_qos_limits(layout, observation, _wishes(scene.memory, scene.facts)).values(),
            Strategy.CPU_QOS: of_cpu,
            Strategy.OOM_SCORES: oom_scores(layout, observation, due_now, on=scene.facts.oom_scores),
            Strategy.UCLAMP: clamps_of_pods(layout, observation, _cpu_wishes(scene.memory, scene.facts)),
        },
    )
    each_tick = _each_tick(scene, cpus)
    unread = {path for place in others for path in _cgroups(place)}
    schedule, limits = scheduled(scene.memory.knob_schedule, each_tick.limits, of_pods.limits, unread, beside.readings)
    return schedule, limits, (*each_tick.refused, *of_pods.refused)


def _each_tick(scene: _Scene, cpus: CpuLists) -> Composed:
    """Of the roots, and CPU lists of all below best effort's."""
    high, pids = _high_limit(scene), _root_pids(scene)
    return composed(
        scene.layout,
        {
            Strategy.CPU_SUPPRESS: cpus.limits,
            Strategy.OWN_CPUS: own_cpus(
                scene.layout, scene.observation, scene.pods, scene.facts.processors, scene.facts.given_away
            ),
            Strategy.MEMORY_HEADROOM: (high,) if high else (),
            Strategy.PROCESS_LIMITS: (
                *((pids,) if pids else ()),
                *root_cgroups(scene.layout, scene.observation, scene.facts.suppress),
            ),
            Strategy.MEMORY_QOS: tier_limits(scene.layout, scene.observation, _wishes(scene.memory, scene.facts)),
            Strategy.CPU_QOS: tier_identities(scene.layout, scene.observation, _cpu_wishes(scene.memory, scene.facts)),
            Strategy.UCLAMP: tier_clamps(scene.layout, scene.observation, _cpu_wishes(scene.memory, scene.facts)),
        },
    )


def _cgroups(place: PodPlace) -> tuple[str, ...]:
    return (place.path, *place.containers.values())


def _wishes(memory: LimitMemory, facts: LimitFacts) -> MemoryWishes:
    return wishes(memory.memory_qos.wishes, facts.memory_qos, facts.pods)


def _cpu_wishes(memory: LimitMemory, facts: LimitFacts) -> CpuWishes:
    return cpu_wishes(memory.cpu_qos.wishes, facts.cpu_qos, facts.uclamp, facts.pods)


def _high_limit(scene: _Scene) -> Limit | None:
    observation, strategy, knob = scene.observation, scene.facts.eviction, scene.knobs.memory_high
    reading = observation.knobs.get(knob) if knob else None
    return (
        high_limit(knob, reading, observation, memory_headroom(observation, strategy), strategy)
        if knob and reading
        else None
    )


def _root_pids(scene: _Scene) -> Limit | None:
    reading = scene.observation.knobs.get(scene.knobs.pids)
    return root_pids(scene.knobs.pids, reading, scene.observation, scene.facts.suppress) if reading else None


def _burst_facts(layout: Layout, facts: LimitFacts) -> BurstFacts:
    return BurstFacts(layout, facts.burst, facts.pods)


def _raised(scene: _Scene) -> tuple[QuotaBurstMemory, Iterable[Limit]]:
    """Quotas of throttled online containers and their pods. What no pod may have is shared by none, idle or not."""
    facts, barred = _burst_facts(scene.layout, scene.facts), scene.observation.barred[CPU]
    capacity_millis = max(scene.size.capacity_millis - barred, 0) if scene.size else 0
    pool = shared_pool(scene.usage, capacity_millis, facts)
    after, limits = quota_bursts(scene.memory.quota_bursts, facts, scene.observation, pool)
    return after, limits.values()


def _limited_pods(layout: Layout, places: Places, below: Mapping[Knob, Limit]) -> int:
    limited = {knob.cgroup for knob in below if knob.file in _BATCH_FILES}
    root = f"{layout.best_effort}/"
    return sum(place.path in limited and place.path.startswith(root) for place in places.pods.values())


def _in_use(observation: Observation, pods: Iterable[Pod]) -> dict[str, int]:
    """Bytes that cannot be dropped, by cgroup path."""
    found = {}
    for pod in pods:
        place, samples = observation.places.pods[pod.uid], observation.containers.get(pod.uid, {})
        containers = ((path, samples.get(name)) for name, path in place.containers.items())
        for path, sample in ((place.path, observation.pods.get(pod.uid)), *containers):
            if isinstance(sample, CgroupSample):
                found[path] = sample.ends_bytes
    return found


def _brake_plan(
    scene: _Scene, quota: CpuCeiling, cpus: CpuCeiling | None, stalls: OnlineStalls, below: Mapping[Knob, Limit]
) -> BrakePlan | None:
    """The brake cuts by quota, also where CPUs are the ceiling: the tick that it wakes narrows the list instead."""
    ceiling, last = _of_both(cpus, quota), scene.memory.brake
    steady = scene.facts.suppress.policy is SuppressPolicy.ADAPTIVE
    deadband_pct = _STEADY_BRAKE_DEADBAND_PCT if steady else _BRAKE_DEADBAND_PCT
    in_force = min((us for us in (ceiling.in_force_us, quota.in_force_us) if us != UNLIMITED), default=UNLIMITED)
    if not ceiling.base_terms or scene.size is None:
        unreadable = ceiling.decision.reason is Reason.KNOB_UNREADABLE
        return last if last is None or unreadable else last.lowered_to(in_force)
    return BrakePlan(
        knob=scene.knobs.quota,
        base_terms=ceiling.base_terms,
        base_us=ceiling.base_us,
        floor_us=ceiling.floor_us,
        ceiling_us=in_force,
        deadband_us=scene.size.capacity_millis * US_PER_MILLI * deadband_pct // 100,
        policy=ceiling.decision.policy,
        suffering_us=stalls.relief.first_cut_us if stalls.online else None,
        narrow_first=_narrow_first(scene.layout, below),
    )


def _of_both(cpus: CpuCeiling | None, quota: CpuCeiling) -> CpuCeiling:
    """What limits best effort: the quota, also where it stands in the list's stead; else the list."""
    return quota if cpus is None or quota.base_terms else cpus


def _narrow_first(layout: Layout, below: Mapping[Knob, Limit]) -> tuple[tuple[Knob, int], ...]:
    """Quotas of pods and containers that a lower one above them would contradict, on v1."""
    values = ((knob, limit.value) for knob, limit in below.items() if is_v1_quota(knob))
    limited = [(knob, value) for knob, value in values if isinstance(value, int) and value != UNLIMITED]
    root = f"{layout.best_effort}/"
    return tuple(sorted((p for p in limited if p[0].cgroup.startswith(root)), key=lambda p: (-p[1], p[0])))

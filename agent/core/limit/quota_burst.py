"""Quota bursts: throttled online containers get more than their CPU limit while the CPUs that all share are idle.

    up by a fifth in each tick that saw it throttled, to limit x cfsQuotaBurstPercent and the shared CPUs at most
    down by a fifth a tick while the shared CPUs are busy, its tokens are spent, or it was not throttled for a minute
    a pod's quota = its own + what its containers have beyond theirs

A quota of ours is never one of whole milli-CPU, and the kubelet's always is: what it writes is seen at once and stays,
even where it came while no agent ran. LSE, LSR, BE, batch and mid pods and whoever has no quota are left alone
(docs/adr/0044). Source: Koordinator pkg/koordlet/qosmanager/plugins/cpuburst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from agent.core.limit.allowance import US_PER_MILLI
from agent.core.limit.burst_tokens import PoolState, SharedPool, Tokens, most_tokens
from agent.core.limit.cpu_burst import BurstFacts
from agent.core.limit.release import released
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import UNLIMITED, is_granted, quota_knob
from agent.core.observe.observation import Knob, KnobReading, Observation, Places
from model.decision import Decision, TermSum, Unit
from model.pod.pod import Pod
from model.qos import QoSClass
from model.reason import Reason
from model.resources import CPU
from model.strategy import BurstStrategy

_CALM_SECONDS = 60.0
"""Koordinator keeps what it raised for as long as the node is idle, whether it is used or not."""


class Step(StrEnum):
    """What becomes of a quota."""

    UP = "throttled: up"
    HOLD = "held"
    DOWN = "down"


_FIFTHS = {Step.UP: 6, Step.HOLD: 5, Step.DOWN: 4}


class QuotaBurstMemory(msgspec.Struct, frozen=True):
    """What one tick must know of the one before, by container cgroup: tokens, and which quotas are ours or to be."""

    tokens: Mapping[str, Tokens] = {}
    raised: frozenset[str] = frozenset()


class _Container(msgspec.Struct, frozen=True):
    """One container with a CPU limit, and the quotas that count for it."""

    name: str
    whose: str
    cgroup: str
    limit_us: int
    knob: Knob
    pod_knob: Knob


class _Quota(msgspec.Struct, frozen=True):
    """What was granted without us, and what the kernel holds."""

    granted_us: int
    held_us: int


def quotas_wanted(memory: QuotaBurstMemory, facts: BurstFacts, places: Places) -> Iterator[Knob]:
    """The files that `quota_bursts` must know: of containers that are raised, or are to be, and of their pods."""
    for pod in facts.listed if memory.raised else ():
        raised = [container for container in _containers(facts, places, pod) if container.cgroup in memory.raised]
        yield from dict.fromkeys(knob for container in raised for knob in (container.pod_knob, container.knob))


def quota_bursts(
    memory: QuotaBurstMemory, facts: BurstFacts, observation: Observation, pool: SharedPool
) -> tuple[QuotaBurstMemory, dict[Knob, Limit]]:
    """The quotas of containers that are raised, or come back, and of their pods; and what to remember."""
    limits: dict[Knob, Limit] = {}
    tokens: dict[str, Tokens] = {}
    raised: set[str] = set()
    now = observation.monotonic_seconds
    for pod in facts.listed:
        if not facts.policy(pod).raises:
            continue
        strategy, samples = facts.of(pod), observation.containers.get(pod.uid, {})
        for container in _containers(facts, observation.places, pod):
            before, sample = memory.tokens.get(container.cgroup), samples.get(container.name)
            saved = Tokens.after(before, sample, container.limit_us, now, most_tokens(strategy))
            if saved is None:
                continue
            tokens[container.cgroup] = saved
            step = _step(saved, strategy, pool, now)
            if container.cgroup not in memory.raised:
                raised |= {container.cgroup} if step is Step.UP else set()
                continue
            found = _rewritten(container, observation) or _of(container, step, strategy, pool, observation)
            limits |= found
            if any(limit.decision.reason is Reason.QUOTA_BURST for limit in found.values()):
                raised.add(container.cgroup)
    return QuotaBurstMemory(tokens, frozenset(raised)), {**limits, **_pods(limits, observation, pool)}


def _containers(facts: BurstFacts, places: Places, pod: Pod) -> Iterator[_Container]:
    """Those whose quota may be raised."""
    place = facts.place(places, pod)
    online = pod.colocation.qos_label in (QoSClass.NONE, QoSClass.LS) and not pod.colocation.below_prod
    if place is None or not online or pod.terminal or not facts.policy(pod).raises:
        return
    pod_knob = quota_knob(facts.layout, place.path)
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        cgroup, limit = place.containers.get(container.name), container.limits[CPU]
        if cgroup is not None and limit > 0:
            whose = f"pod {pod.key}, container {container.name}"
            knob = quota_knob(facts.layout, cgroup)
            yield _Container(container.name, whose, cgroup, limit * US_PER_MILLI, knob, pod_knob)


def _step(tokens: Tokens, strategy: BurstStrategy, pool: SharedPool, now: float) -> Step:
    calm = now - tokens.throttled_at
    spent = strategy.quota_seconds >= 0 and tokens.saved <= 0
    if spent or pool.state is PoolState.OVERLOAD or calm >= _CALM_SECONDS:
        return Step.DOWN
    return Step.UP if calm == 0 and pool.state is PoolState.IDLE else Step.HOLD


def _rewritten(container: _Container, observation: Observation) -> dict[Knob, Limit]:
    """Where the kubelet wrote the quota of the container or of its pod while it was ours, both are its own again."""
    found = ((knob, observation.knobs.get(knob)) for knob in (container.pod_knob, container.knob))
    readings = {knob: reading for knob, reading in found if reading is not None}
    if not any(isinstance(r.kernel, int) and is_granted(r.kernel) and _is_stale(r) for r in readings.values()):
        return {}
    limits = (released(knob, reading, observation.at_seconds) for knob, reading in readings.items())
    return {limit.knob: limit for limit in limits if limit}


def _is_stale(reading: KnobReading) -> bool:
    return reading.original not in (None, reading.kernel)


def _of(
    container: _Container, step: Step, strategy: BurstStrategy, pool: SharedPool, observation: Observation
) -> dict[Knob, Limit]:
    """Nothing where the quota was not read or is not ours to change; nor does a container outgrow a pod that is not."""
    own, pod = _quota(observation.knobs.get(container.knob)), observation.knobs.get(container.pod_knob)
    if own is None or pod is None or (pod.kernel != UNLIMITED and _quota(pod) is None):
        return {}
    terms = TermSum().add("granted", own.granted_us).become(step.value, own.held_us * _FIFTHS[step] // 5)
    terms.at_most("burst share", own.granted_us * strategy.quota_pct // 100, f"{strategy.quota_pct} % of it")
    terms.at_most("shared CPUs", pool.millis * US_PER_MILLI, "all but what LSE and LSR pods request")
    terms.become("not the kubelet's", terms.value - (terms.value - 1) % US_PER_MILLI)
    detail = f"{container.whose}; shared CPUs: {pool.state}"
    return {container.knob: _limit(container.knob, own.granted_us, terms, detail, observation)}


def _pods(limits: Mapping[Knob, Limit], observation: Observation, pool: SharedPool) -> dict[Knob, Limit]:
    """By the pods' own quotas, where they have one."""
    beyond: dict[Knob, int] = {}
    for knob, limit in limits.items():
        pod = msgspec.structs.replace(knob, cgroup=knob.cgroup.rsplit("/", 1)[0])
        more = limit.decision.value - limit.decision.terms[0].value
        beyond[pod] = beyond.get(pod, 0) + more
    found = {}
    for knob, more in beyond.items():
        quota = _quota(observation.knobs.get(knob))
        if quota is not None:
            terms = TermSum().add("granted", quota.granted_us).add("its containers", more)
            terms.at_most("shared CPUs", max(pool.millis * US_PER_MILLI, quota.granted_us))
            if more:
                terms.become("not the kubelet's", terms.value + (1 - terms.value) % US_PER_MILLI)
            found[knob] = _limit(knob, quota.granted_us, terms, "", observation)
    return found


def _quota(reading: KnobReading | None) -> _Quota | None:
    """None without a quota, and where it is not ours to change: it is in somebody else's unit."""
    if reading is None or not isinstance(reading.kernel, int) or reading.kernel == UNLIMITED:
        return None
    if is_granted(reading.kernel):
        return None if _is_stale(reading) else _Quota(reading.kernel, reading.kernel)
    granted = reading.original
    ours = reading.last_written == reading.kernel and isinstance(granted, int) and granted != UNLIMITED
    return _Quota(granted, reading.kernel) if ours and isinstance(granted, int) else None


def _limit(knob: Knob, granted_us: int, terms: TermSum, detail: str, observation: Observation) -> Limit:
    """Never less than was granted."""
    terms.at_least("granted at least", granted_us)
    reason = Reason.QUOTA_BURST if terms.value > granted_us else Reason.KNOB_RELEASED
    unit, now = Unit.MICROSECONDS, observation.at_seconds
    decision = Decision(knob.subject, knob.file, terms.value, unit, reason, terms.terms, "", now, detail)
    return Limit(knob, terms.value, decision)

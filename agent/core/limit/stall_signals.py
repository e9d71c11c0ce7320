"""Stall signals of online pods: the CPU pressure of their cgroups, and how often their own limits throttle them; and
of the node's own services, which no weight inside kubepods protects: best effort alone there has all of its weight.

Not the node's own pressure: it counts best effort's waiting too. Nor that of a pod that its own limit throttles; while
there is one below the burstable root, or a batch pod, its pods are looked at one by one. So they are where the root's
word is disregarded: one pod that always waits would speak for all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from agent.core.limit.stall_relief import StallSignal
from agent.core.observe.layout import SERVICES, Layout
from agent.core.observe.observation import CgroupSample, Missing, Observation
from agent.core.observe.usage import NodeUsage
from model.pod.pod import Pod
from model.qos import KubernetesQoS
from model.strategy import SuppressStrategy

MOST_SOURCES = 1024
"""Four times as many as a kubelet takes."""
_SHORTEST_SECONDS = 0.5
_SLOW_TURN_SECONDS = 10.0
"""Pressure of pods is read in turn; what moved since the reading before moved in at least this long."""
_FORGOTTEN_SECONDS = 15.0


class StallTrack(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Total waiting time (us) when it was last looked at, and when before that (monotonic seconds); the share of time
    between the two, 0 to 1."""

    at_seconds: float
    total_us: int
    before_seconds: float
    before_us: int
    ratio: float = 0.0


class StallSource(msgspec.Struct, frozen=True):
    """A cgroup whose waiting for CPU is a sign; `total_us` is None where the kernel keeps none. Roots, and pods to
    which the brake listens, are read in `each_pass`, other pods in turn."""

    cgroup: str
    name: str
    total_us: int | None
    is_root: bool = False
    each_pass: bool = False


def stall_sources(
    layout: Layout,
    observation: Observation,
    usage: NodeUsage | None,
    pods: Iterable[Pod] | None,
    strategy: SuppressStrategy,
    *,
    root_disregarded: bool = False,
    heard: Collection[str] = (),
) -> tuple[StallSource, ...]:
    """The node's services; the burstable root, where all pods below it may speak, and single pods; Guaranteed ones have
    no root of their own. Of pods that are `heard` this pass has read how long they waited."""
    if strategy.online_stall_pct is None:
        return ()
    throttled = usage.throttled_ratio if usage else {}
    placed = [pod for pod in pods or () if pod.uid in observation.places.pods and not pod.terminal]
    able = {p.uid: not p.best_effort and not _throttled(throttled.get(p.uid, 0.0), strategy) for p in placed}
    burstable = [pod for pod in placed if pod.status.kubernetes_qos is KubernetesQoS.BURSTABLE]
    together = all(able[pod.uid] for pod in burstable)
    alone = [
        pod
        for pod in placed
        if able[pod.uid]
        and (root_disregarded or not (together and pod.status.kubernetes_qos is KubernetesQoS.BURSTABLE))
    ]
    alone.sort(key=lambda pod: (pod.status.kubernetes_qos is not KubernetesQoS.GUARANTEED, pod.key))
    root = (
        [StallSource(layout.burstable, "burstable pods", _total(observation.burstable), is_root=True, each_pass=True)]
        if together
        else []
    )
    waited_us = observation.services_waited_us
    services = (
        []
        if waited_us is None
        else [StallSource(SERVICES, "the node's services", waited_us, is_root=True, each_pass=True)]
    )
    found = [
        *services,
        *root,
        *(
            StallSource(path, f"pod {p.key}", _total(observation.pods.get(p.uid)), each_pass=path in heard)
            for p in alone
            for path in (observation.places.pods[p.uid].path,)
        ),
    ]
    return tuple(found[:MOST_SOURCES])


def stall_tracks(before: Mapping[str, StallTrack], found: Iterable[StallSource], now: float) -> dict[str, StallTrack]:
    """Waiting of every source that tells of it, by cgroup."""
    return {
        w.cgroup: _track(before.get(w.cgroup), w.total_us, w.each_pass, now) for w in found if w.total_us is not None
    }


def stall_signals(
    tracks: Mapping[str, StallTrack],
    found: Iterable[StallSource],
    usage: NodeUsage,
    pods: Iterable[Pod] | None,
    strategy: SuppressStrategy,
) -> tuple[StallSignal, ...]:
    """One for every cgroup that waits, and for every online pod that is throttled."""
    stalls = [_stalled(w, tracks[w.cgroup].ratio, strategy) for w in found if w.cgroup in tracks]
    limited = [
        _limited(pod, usage.throttled_ratio[pod.uid], strategy)
        for pod in pods or ()
        if not pod.best_effort and pod.uid in usage.throttled_ratio
    ]
    return tuple(sign for sign in (*stalls, *limited) if sign is not None)


def _throttled(ratio: float, strategy: SuppressStrategy) -> bool:
    """Its own limit may explain half of what counts as a stall."""
    return ratio > 0 and ratio * 200 >= (strategy.online_stall_pct or 0)


def _total(sample: CgroupSample | Missing | None) -> int | None:
    pressure = sample.pressure if isinstance(sample, CgroupSample) else None
    return pressure.cpu_some.total_us if pressure and pressure.cpu_some else None


def _track(before: StallTrack | None, total_us: int, each_pass: bool, now: float) -> StallTrack:
    if before is None or total_us < before.total_us or now < before.at_seconds:
        return StallTrack(now, total_us, now, total_us)
    if now - before.at_seconds < _SHORTEST_SECONDS:
        return before
    if each_pass:
        # Over two looks: one alone is noisy.
        ratio = _ratio(total_us - before.before_us, now - before.before_seconds)
        return StallTrack(now, total_us, before.at_seconds, before.total_us, ratio)
    if total_us == before.total_us and now - before.at_seconds <= _FORGOTTEN_SECONDS:
        return before
    ratio = _ratio(total_us - before.total_us, max(now - before.at_seconds, _SLOW_TURN_SECONDS))
    return StallTrack(now, total_us, before.at_seconds, before.total_us, ratio)


def _ratio(us: int, seconds: float) -> float:
    return min(us / 1_000_000 / seconds, 1.0)


def _stalled(source: StallSource, ratio: float, strategy: SuppressStrategy) -> StallSignal | None:
    if not ratio or strategy.online_stall_pct is None:
        return None
    text = f"{source.name} waiting {ratio:.0%} of the time, {strategy.online_stall_pct} % is too much"
    return StallSignal(source.cgroup, text, ratio * 100 / max(strategy.online_stall_pct, 1))


def _limited(pod: Pod, ratio: float, strategy: SuppressStrategy) -> StallSignal | None:
    if not ratio or strategy.online_throttled_pct is None:
        return None
    text = f"pod {pod.key} throttled in {ratio:.0%} of its periods, {strategy.online_throttled_pct} % is too much"
    level = ratio * 100 / max(strategy.online_throttled_pct, 1)
    return StallSignal(f"throttled {pod.uid}", text, level, own_limit=True)

"""Usage: what the node and its parts use now and over windows, from one observation after the other.

The differences (system, online) are taken between sums over the very same interval, so that a part that was not read
in a pass makes a gap and never a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from agent.core.observe.observation import CgroupSample, Missing, NodeSample, Observation
from agent.core.observe.series import Series, aggregates, spacing_ms
from agent.core.observe.throttling import Throttle, throttles
from agent.core.observe.windows import Averages, Moment, Rate, Track, Windows, begun, covered, rate_since, read, unrated
from model.node import Node
from model.nodemetric import AggregatedUsage
from model.pod.pod import Pod
from model.qos import QoSClass
from model.report import Usage
from model.resources import BATCH_CPU
from model.strategy import ColocationStrategy, MemoryCollectPolicy

_Key = TypeVar("_Key", str, int)

__all__ = [
    "Averages",
    "NodeUsage",
    "Peaks",
    "Statistics",
    "UsageState",
    "Windows",
    "best_effort_limit_millis",
    "best_effort_request_millis",
    "measure",
    "minute_peaks",
    "running_batch_millis",
    "statistics",
    "windows_of",
]

_FULL_RATIO = 0.9
_SHORTEST_INTERVAL_SECONDS = 0.5
"""A rate over less than this is dominated by the 10 ms ticks of /proc/stat (reference: kernel measurements)."""


class UsageState(msgspec.Struct, frozen=True):
    """What must be remembered between two passes; empty at the start.

    Bounded by what runs: about 5.5 KB a pod or host application, 2.4 KB a container, 72 KB for the two series; 2.5 MB
    for 250 pods of two containers.
    """

    monotonic_seconds: float = 0.0
    cpus: int = 0
    roots: Mapping[str, Track] = {}
    pods: Mapping[str, Track] = {}
    containers: Mapping[str, Mapping[str, Track]] = {}
    host_applications: Mapping[str, Track] = {}
    numa: Mapping[int, Track] = {}
    throttles: Mapping[str, Throttle] = {}
    node_series: Series = Series()
    system_series: Series = Series()


class NodeUsage(msgspec.Struct, frozen=True):
    """Usage of the node and its parts.

    `online` is every pod cgroup outside besteffort, `system` what the node uses outside all pods, `unlisted_system`
    what it uses outside the listed pods and the host applications (Koordinator's system usage). `pods` (by uid),
    `containers` (by uid and name), `host_applications` (by name) and `numa` (by id) lack what was not measured.
    Containers keep no aggregate window: theirs is the live average, up to half a round of slow turns old.
    `throttled_ratio` is throttled periods of all periods, by uid. `live_seconds` is how much of the live window,
    `live_span_seconds` long, is filled. `held` tells that the newest pass gave a root no rate, so that its figures are
    those of a pass before.
    """

    at_seconds: float
    node: Averages
    system: Averages
    unlisted_system: Averages
    online: Averages
    best_effort: Averages
    pods: Mapping[str, Averages]
    live_seconds: float
    live_span_seconds: float
    throttled_ratio: Mapping[str, float] = {}
    burstable: Averages | None = None
    containers: Mapping[str, Mapping[str, Averages]] = {}
    host_applications: Mapping[str, Averages] = {}
    numa: Mapping[int, Averages] = {}
    held: bool = False

    @property
    def live_window_full(self) -> bool:
        """Enough was seen, up to now, to give more than before; the newest tick need not be exact."""
        return not self.held and self.live_seconds >= self.live_span_seconds * _FULL_RATIO


def windows_of(strategy: ColocationStrategy, tick_seconds: float = 1.0) -> Windows:
    """The windows a strategy asks for. The hot part of the page cache is not measured, so it does not count."""
    return Windows(
        live_seconds=strategy.live_window_seconds,
        aggregate_seconds=strategy.aggregate_seconds,
        tick_seconds=tick_seconds,
        series_seconds=max(strategy.aggregate_durations_seconds, default=0.0),
        page_cache=strategy.memory_collect_policy is MemoryCollectPolicy.WITH_PAGE_CACHE,
    )


_NODE, _KUBEPODS, _BEST_EFFORT, _BURSTABLE = "node", "kubepods", "besteffort", "burstable"
_SYSTEM, _UNLISTED, _ONLINE = "system", "unlisted", "online"
_NEEDED = (_NODE, _SYSTEM, _UNLISTED, _ONLINE, _BEST_EFFORT)


def measure(state: UsageState, observation: Observation, windows: Windows) -> tuple[UsageState, NodeUsage | None]:
    """Rates and averages after one more pass; None until node and pod roots were read twice, and when one of them had
    no rate for ten passes: until then its last figures stand.

    A pass too soon after the last one changes nothing: its time is covered by the next. A monotonic clock that runs
    backwards is another boot's: everything starts again.
    """
    elapsed = observation.monotonic_seconds - state.monotonic_seconds
    if state.roots and 0 <= elapsed < _SHORTEST_INTERVAL_SECONDS:
        return state, _summary(state, observation, windows)
    after = _advanced(state if elapsed >= 0 else UsageState(), observation, windows)
    return after, _summary(after, observation, windows)


def _advanced(state: UsageState, observation: Observation, windows: Windows) -> UsageState:
    cpus = observation.node_sample.cpus if isinstance(observation.node_sample, NodeSample) else state.cpus
    # A CPU that was taken away since the last pass may have worked until then.
    now = Moment.of(observation.monotonic_seconds, max(cpus, state.cpus), windows)
    counted = _read_all(state.roots, _root_samples(observation), now)
    pods = _read_all(state.pods, observation.pods, now)
    host_applications = _read_all(state.host_applications, observation.host_applications, now)
    listed = _listed(state, pods, host_applications)
    roots = {**counted, **_derived(state, counted, listed, now)}
    short = now.of_containers()
    return UsageState(
        monotonic_seconds=observation.monotonic_seconds,
        cpus=cpus,
        roots=roots,
        pods=pods,
        containers={
            uid: _read_all(state.containers.get(uid, {}), samples, short)
            for uid, samples in observation.containers.items()
        },
        host_applications=host_applications,
        numa=_read_all(
            state.numa, {n.numa_id: CgroupSample(n.cpu_ns, n.memory_used_bytes) for n in observation.numa}, now
        ),
        throttles=throttles(state.throttles, observation),
        node_series=_sampled(state.node_series, state.roots.get(_NODE), roots.get(_NODE), windows),
        system_series=_sampled(state.system_series, state.roots.get(_UNLISTED), roots.get(_UNLISTED), windows),
    )


def _read_all(
    tracks: Mapping[_Key, Track], samples: Mapping[_Key, CgroupSample | Missing], now: Moment
) -> dict[_Key, Track]:
    """Tracks of everything that is still there."""
    found = {}
    for key, sample in samples.items():
        if (track := read(tracks.get(key), sample, now)) is not None:
            found[key] = track
    return found


def _root_samples(observation: Observation) -> dict[str, CgroupSample | Missing]:
    samples = {
        _NODE: _as_cgroup(observation.node_sample, observation.node),
        _KUBEPODS: observation.kubepods,
        _BEST_EFFORT: observation.best_effort,
    }
    return samples if observation.burstable is None else {**samples, _BURSTABLE: observation.burstable}


def _as_cgroup(seen: NodeSample | Missing, node: Node | None) -> CgroupSample | Missing:
    """The whole node in the shape of a cgroup.

    What was swapped out counts as used: nobody tells whose it is, and its owner may want it back at any time. To lend
    its room would push more of online pods out, and lend that, too. So does what was taken from the machine.
    """
    if isinstance(seen, Missing):
        return seen
    cache = max(seen.memory_with_cache_bytes - seen.memory_used_bytes, 0)
    used = seen.memory_used_bytes + seen.swapped_bytes + seen.missing_bytes(node)
    return CgroupSample(seen.cpu_ns, used, cache)


def _derived(state: UsageState, counted: Mapping[str, Track], listed: Rate, now: Moment) -> dict[str, Track]:
    """Differences of what was used since the last pass; a gap where a part is missing."""
    since_ms = round(state.monotonic_seconds * 1000)
    node, kubepods, best_effort = (
        rate_since(since_ms, state.roots.get(name), counted.get(name)) for name in (_NODE, _KUBEPODS, _BEST_EFFORT)
    )
    rates = {_SYSTEM: _minus(node, kubepods), _UNLISTED: _minus(node, listed), _ONLINE: _minus(kubepods, best_effort)}
    return {name: _followed(state.roots.get(name), rate, now) for name, rate in rates.items()}


def _followed(track: Track | None, rate: Rate | None, now: Moment) -> Track:
    if track is None:
        return begun(now)
    return unrated(track, now) if rate is None else covered(track, now, 0, rate.micros, rate.memory_bytes)


def _listed(state: UsageState, pods: Mapping[str, Track], host_applications: Mapping[str, Track]) -> Rate:
    """What listed pods and host applications used since the last pass; who has no rate counts as system."""
    since_ms = round(state.monotonic_seconds * 1000)
    micros = memory = 0
    for before, after in ((state.pods, pods), (state.host_applications, host_applications)):
        for key, track in after.items():
            if (rate := rate_since(since_ms, before.get(key), track)) is not None:
                micros += rate.micros
                memory += rate.memory_bytes
    return Rate(micros, memory)


def _minus(whole: Rate | None, part: Rate | None) -> Rate | None:
    if whole is None or part is None:
        return None
    return Rate(max(whole.micros - part.micros, 0), max(whole.memory_bytes - part.memory_bytes, 0))


def _sampled(series: Series, before: Track | None, after: Track | None, windows: Windows) -> Series:
    """The series with the newest rate, once in each spacing of covered time."""
    if before is None or after is None or after.averages is None:
        return series
    spacing = spacing_ms(windows.series_seconds)
    if before.sums.covered_ms // spacing == after.sums.covered_ms // spacing:
        return series
    return series.push(after.sums.at_ms, after.averages.last)


def _summary(state: UsageState, observation: Observation, windows: Windows) -> NodeUsage | None:
    roots = _measured(state.roots)
    if not roots.keys() >= set(_NEEDED):
        return None
    return NodeUsage(
        at_seconds=observation.at_seconds,
        node=roots[_NODE],
        system=roots[_SYSTEM],
        unlisted_system=roots[_UNLISTED],
        online=roots[_ONLINE],
        best_effort=roots[_BEST_EFFORT],
        # After a pass too soon the state still knows pods that have gone meanwhile.
        pods=_measured({uid: track for uid, track in state.pods.items() if uid in observation.pods}),
        live_seconds=state.roots[_ONLINE].live_covered_seconds,
        live_span_seconds=windows.live_seconds,
        throttled_ratio={uid: t.ratio for uid, t in state.throttles.items() if t.ratio is not None},
        burstable=roots.get(_BURSTABLE),
        containers={uid: _measured(tracks) for uid, tracks in state.containers.items()},
        host_applications=_measured(state.host_applications),
        numa=_measured(state.numa),
        held=any(state.roots[name].silent_passes for name in _NEEDED),
    )


def _measured(tracks: Mapping[_Key, Track]) -> dict[_Key, Averages]:
    return {key: averages for key, track in tracks.items() if (averages := track.measured) is not None}


class Statistics(msgspec.Struct, frozen=True):
    """Percentiles of node and system over several durations."""

    node: tuple[AggregatedUsage, ...] = ()
    system: tuple[AggregatedUsage, ...] = ()


def statistics(state: UsageState, durations_seconds: tuple[float, ...]) -> Statistics:
    """What NodeMetric says beside the averages; a few ms of work, for once a report."""
    now_ms = round(state.monotonic_seconds * 1000)
    return Statistics(
        aggregates(state.node_series, durations_seconds, now_ms),
        aggregates(state.system_series, durations_seconds, now_ms),
    )


class Peaks(msgspec.Struct, frozen=True):
    """90th percentiles of the last 60 s: of the node (None before it was measured), of each pod, by uid, and of what
    the node uses outside the listed pods."""

    node: Usage | None
    pods: Mapping[str, Usage]
    outside_pods: Usage = Usage()


def minute_peaks(state: UsageState) -> Peaks:
    """What the prediction learns from, for once a minute."""
    node = state.roots.get(_NODE)
    pods = {uid: track.minute_peak for uid, track in state.pods.items() if track.measured}
    outside = [track for track in (state.roots.get(_UNLISTED), *state.host_applications.values()) if track]
    apart = [peak for track in outside if track.measured and (peak := track.minute_peak) is not None]
    return Peaks(
        node.minute_peak if node and node.measured else None,
        {uid: peak for uid, peak in pods.items() if peak is not None},
        Usage(sum(peak.cpu_millis for peak in apart), sum(peak.memory_bytes for peak in apart)),
    )


def best_effort_limit_millis(cpus: int | None, quota_us: int | None, period_us: int) -> int | None:
    """CPU best effort may really use: its CPUs, and its quota where one is set; None where neither is known.

    Source: Koordinator pkg/koordlet/metricsadvisor/collectors/beresource.
    """
    limits = [] if cpus is None else [1000 * cpus]
    if quota_us is not None and quota_us > 0 and period_us > 0:
        limits.append(quota_us * 1000 // period_us)
    return min(limits, default=None)


def running_batch_millis(pod: Pod) -> int:
    """batch-cpu that the pod's containers and sidecars ask for: neither init containers, which are over, nor overhead.

    Source: Koordinator pkg/koordlet/qosmanager/plugins/cpuevict.
    """
    if pod.terminal:
        return 0
    sidecars = (container for container in pod.spec.init_containers if container.sidecar)
    running = sum(container.requests[BATCH_CPU] for container in (*pod.spec.containers, *sidecars))
    # Amounts that only an annotation tells are for limits: the pod's own request is the bound.
    return min(running, pod.spec.requests[BATCH_CPU])


def best_effort_request_millis(pods: Iterable[Pod]) -> int:
    """The same of all pods labelled BE."""
    return sum(running_batch_millis(pod) for pod in pods if pod.colocation.qos_label is QoSClass.BE)

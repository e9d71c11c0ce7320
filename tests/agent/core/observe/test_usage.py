"""Usage of the node and its parts: differences of the same interval, and nothing kept of what has gone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.observe.observation import (
    Absence,
    CgroupSample,
    CpuThrottling,
    Missing,
    NodeSample,
    NumaSample,
    Observation,
)
from agent.core.observe.usage import (
    Averages,
    NodeUsage,
    UsageState,
    Windows,
    best_effort_limit_millis,
    best_effort_request_millis,
    measure,
    minute_peaks,
    running_batch_millis,
    statistics,
    windows_of,
)
from model.node import Node
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import QoSClass
from model.report import Usage
from model.resources import BATCH_CPU, MEMORY, ResourceVector
from model.strategy import ColocationStrategy, MemoryCollectPolicy
from tests.pods import with_fields

WINDOWS = Windows(10.0, 300.0)
SECOND = 1_000_000_000
GONE = Missing("/x", Absence.GONE)
GARBAGE = Missing("/x", Absence.UNREADABLE, "garbage")


def run(observations: list[Observation], windows: Windows = WINDOWS) -> tuple[UsageState, NodeUsage | None]:
    state, usage = UsageState(), None
    for seen in observations:
        state, usage = measure(state, seen, windows)
    return state, usage


def measured(observations: list[Observation], windows: Windows = WINDOWS) -> NodeUsage:
    usage = run(observations, windows)[1]
    assert usage is not None
    return usage


def sample(cpu: float, memory: int = 0, **more: Any) -> CgroupSample:
    """`cpu` in CPU seconds on the counter."""
    return CgroupSample(round(cpu * SECOND), memory, **more)


def at(build: Any, t: float, *, node: float = 0, kubepods: float = 0, be: float = 0, **more: Any) -> Observation:
    """Counters in CPU seconds, on a node of 2 CPUs."""
    fields = {
        "node_sample": NodeSample(round(node * SECOND), 100, 2, 150),
        "kubepods": sample(kubepods, 60, page_cache_bytes=20),
        "best_effort": sample(be, 10, page_cache_bytes=5),
    }
    seen: Observation = build.seen(t, **{**fields, **more})
    return seen


def steady(build: Any, seconds: int, **more: Any) -> list[Observation]:
    """A pass each second; node 1.5, pods 1.0 and best effort 0.25 CPUs."""
    return [
        at(build, t, node=1.5 * t, kubepods=t, be=0.25 * t, **{key: make(t) for key, make in more.items()})
        for t in range(seconds + 1)
    ]


def test_first_pass_only_primes(build: Any) -> None:
    """One reading of a counter says nothing."""
    assert run([at(build, 0, node=5)])[1] is None


def test_rates_and_differences(build: Any) -> None:
    """Over 2 s: node 1.5 CPU, pods 1.0, best effort 0.75 → online 0.25, system 0.5."""
    usage = measured([at(build, 0), at(build, 2, node=3, kubepods=2, be=1.5)])
    assert usage.node.last == Usage(1500, 100)
    assert usage.best_effort.last == Usage(750, 10)
    assert usage.online.last == Usage(250, 50)
    assert usage.system.last == Usage(500, 40)
    assert usage.burstable is None
    assert (usage.live_seconds, usage.live_span_seconds, usage.live_window_full) == (2, 10, False)
    assert usage.at_seconds == 1002


def test_live_window_fills(build: Any) -> None:
    """Nine of ten seconds are enough."""
    assert not measured(steady(build, 8)).live_window_full
    assert measured(steady(build, 9)).live_window_full


def test_page_cache_policy(build: Any) -> None:
    """With page cache: node 150, pods 80, best effort 15 → system 70, online 65."""
    windows = msgspec.structs.replace(WINDOWS, page_cache=True)
    usage = measured([at(build, 0), at(build, 1)], windows)
    parts = (usage.node, usage.system, usage.online, usage.best_effort)
    assert [part.live.memory_bytes for part in parts] == [150, 70, 65, 15]


@pytest.mark.parametrize("page_cache", [False, True])
def test_what_was_swapped_out_counts_as_used(build: Any, page_cache: bool) -> None:
    """By the system, since nobody tells whose it is: pushing pages of online pods out frees nothing to lend."""
    windows = msgspec.structs.replace(WINDOWS, page_cache=page_cache)
    swapped = {t: NodeSample(0, 100, 2, 150, swapped_bytes=30) for t in (0, 1)}
    before = measured([at(build, 0), at(build, 1)], windows)
    usage = measured([at(build, t, node_sample=swapped[t]) for t in (0, 1)], windows)
    more = usage.node.last.memory_bytes - before.node.last.memory_bytes
    assert (more, usage.system.last.memory_bytes - before.system.last.memory_bytes) == (30, 30)
    assert usage.online.last.memory_bytes == before.online.last.memory_bytes


GONE_BYTES = {
    "all there": (1000, 0),
    "a part was taken": (700, 300),
    "more than the Node knows": (1200, 0),
    "not told": (0, 0),
}


@pytest.mark.parametrize(("total", "gone"), GONE_BYTES.values(), ids=GONE_BYTES)
def test_memory_that_was_taken_from_the_machine_counts_as_used(build: Any, total: int, gone: int) -> None:
    """The kubelet tells once what there is: what a balloon or an offline block took since then is nobody's to lend."""
    node = Node("n", ResourceVector({MEMORY: 1000}), ResourceVector())
    before = measured([at(build, 0), at(build, 1)])
    samples = {t: NodeSample(0, 100, 2, 150, total_bytes=total) for t in (0, 1)}
    seen = [at(build, t, node_sample=samples[t]) for t in (0, 1)]
    usage = measured([msgspec.structs.replace(each, node=node) for each in seen])
    more = usage.node.last.memory_bytes - before.node.last.memory_bytes
    assert (more, usage.system.last.memory_bytes - before.system.last.memory_bytes) == (gone, gone)
    assert usage.online.last.memory_bytes == before.online.last.memory_bytes


def test_unlisted_pods_and_no_host_applications_count_as_system(build: Any) -> None:
    """Node 1.5, listed pod 0.5, host application 0.25 → 0.75 is system, though all pods together use 1.0."""
    more = {
        "pods": lambda t: {"a": sample(0.5 * t, 20)},
        "host_applications": lambda t: {"nginx": sample(0.25 * t, 30)},
    }
    usage = measured(steady(build, 2, **more))
    assert usage.unlisted_system.last == Usage(750, 50)
    assert usage.system.last == Usage(500, 40)
    assert usage.pods["a"].last == Usage(500, 20)
    assert usage.host_applications["nginx"].live == Usage(250, 30)


def test_a_pod_without_a_rate_counts_as_system(build: Any) -> None:
    """A new pod, and one that was not read in a pass, is system use until it has a rate over the same second."""

    def pods(t: int) -> dict[str, Any]:
        return {} if t < 1 else {"a": GONE if t == 3 else sample(0.5 * t)}

    passes = steady(build, 5, pods=pods)
    unlisted = [measured(passes[: n + 1]).unlisted_system.last.cpu_millis for n in range(1, 6)]
    # t=1 first reading, t=2 rate, t=3 not read, t=4 rate over two seconds, t=5 rate
    assert unlisted == [1500, 1000, 1500, 1500, 1000]


def test_system_is_never_negative(build: Any) -> None:
    """Pods may seem to use more than the node for a moment."""
    usage = measured([at(build, 0), at(build, 1, node=0.5, kubepods=0.7, be=0.9)])
    assert usage.system.last == Usage(0, 40) and usage.online.last.cpu_millis == 0


def test_all_parts_are_told(build: Any) -> None:
    """Burstable, containers by pod and name, NUMA nodes."""
    usage = measured(
        steady(
            build,
            2,
            burstable=lambda t: sample(0.5 * t, 7),
            containers=lambda t: {"a": {"main": sample(0.25 * t, 3), "side": GONE}},
            numa=lambda t: (NumaSample(0, t * SECOND, 40), NumaSample(1, t * SECOND // 2, 60)),
        )
    )
    assert usage.burstable is not None and usage.burstable.last == Usage(500, 7)
    assert usage.containers == {"a": {"main": Averages(Usage(250, 3), Usage(250, 3), Usage(250, 3))}}
    assert {numa: averages.aggregate for numa, averages in usage.numa.items()} == {
        0: Usage(1000, 40),
        1: Usage(500, 60),
    }


def test_counter_reset_yields_no_rate(build: Any) -> None:
    """A re-created cgroup keeps the last known rate for one pass and then goes on from the new counter."""
    passes = [
        at(build, 0, node=10, kubepods=10),
        at(build, 1, node=11, kubepods=10.5),
        at(build, 2, node=12, kubepods=0.1),
    ]
    assert measured(passes).online.last.cpu_millis == 500
    assert measured([*passes, at(build, 3, node=13, kubepods=0.4)]).online.last.cpu_millis == 300


def test_a_pass_too_soon_changes_nothing(build: Any) -> None:
    """A tick woken by the brake makes no rate out of 100 ms, but it sees which pods have gone."""
    passes = steady(build, 2, pods=lambda t: {"a": sample(t / 2), "b": sample(t / 2)})
    state, usage = run(passes)
    after, again = measure(state, at(build, 2.1, node=9, kubepods=9, pods={"a": sample(9)}), WINDOWS)
    assert after == state and again is not None and usage is not None
    assert again.online == usage.online
    assert again.pods == {"a": usage.pods["a"]}


def test_wall_clock_steps_do_not_matter(build: Any) -> None:
    """An hour back and a day forward: the same rates."""
    passes = steady(build, 6)
    stepped = [
        msgspec.structs.replace(seen, at_seconds=seen.at_seconds + jump)
        for seen, jump in zip(passes, (0, 0, -3600, -3600, 86_400, 86_400, 0), strict=True)
    ]
    assert measured(stepped) == measured(passes)


def test_a_clock_that_runs_backwards_starts_again(build: Any) -> None:
    """A state of before a reboot says nothing about now."""
    state, _ = run(steady(build, 5))
    later = [at(build, t, node=t, kubepods=t) for t in (1, 2)]
    state, usage = measure(state, later[0], WINDOWS)
    assert usage is None
    _, usage = measure(state, later[1], WINDOWS)
    assert usage is not None and usage.node.aggregate.cpu_millis == 1000


def test_a_cpu_taken_away_may_have_worked(build: Any) -> None:
    """From 2 CPUs to 1: a rate of 1.9 is possible for the interval in between, and refused after it."""
    shrunk = [
        at(build, t, node=1.9 * t, kubepods=t, node_sample=NodeSample(round(1.9 * t * SECOND), 100, 2 if t < 2 else 1))
        for t in range(4)
    ]
    assert measured(shrunk[:3]).node.last.cpu_millis == 1900
    state, usage = run(shrunk)
    assert usage is not None and state.roots["node"].silent_passes == 1


@pytest.mark.parametrize("part", ["node_sample", "kubepods", "best_effort"])
def test_an_unreadable_root_holds_what_was_known(build: Any, part: str) -> None:
    """Its last figures stand, nothing may grow by them, and after ten passes nothing is claimed."""
    passes = steady(build, 23)
    blind = [msgspec.structs.replace(seen, **{part: GARBAGE}) for seen in passes[13:]]
    before = measured(passes[:13])
    assert before.live_window_full
    for count in range(1, 11):
        usage = measured([*passes[:13], *blind[:count]])
        assert usage.held and not usage.live_window_full
        assert (usage.system, usage.online) == (before.system, before.online)
    assert run([*passes[:13], *blind])[1] is None


def test_a_root_that_is_read_again_counts_once_all_agree(build: Any) -> None:
    """Differences need one more pass, in which all was read: until then figures are held."""
    passes = steady(build, 5)
    passes[3] = msgspec.structs.replace(passes[3], kubepods=GARBAGE)
    assert [measured(passes[: n + 1]).held for n in (2, 3, 4, 5)] == [False, True, True, False]


@pytest.mark.parametrize("part", ["node_sample", "kubepods", "best_effort"])
def test_a_root_that_was_never_read_is_no_usage(build: Any, part: str) -> None:
    """Without node, pods or best effort nothing is claimed."""
    assert run([msgspec.structs.replace(seen, **{part: GARBAGE}) for seen in steady(build, 3)])[1] is None


def test_differences_wait_for_parts_of_the_same_interval(build: Any) -> None:
    """The node was not read for a second: its next rate spans two, so the system's use is told one pass later."""
    passes = steady(build, 4)
    passes[2] = msgspec.structs.replace(passes[2], node_sample=GARBAGE)
    state, _ = run(passes[:4])
    assert state.roots["system"].sums.covered_ms == 1000
    state, usage = run(passes)
    assert state.roots["system"].sums.covered_ms == 2000
    assert usage is not None and usage.system.live.cpu_millis == 500


def test_a_root_that_stays_absurd_is_no_usage(build: Any) -> None:
    """After ten passes without a rate the old averages are not sold as new."""
    absurd = [at(build, 3 + n, node=1000 - n, kubepods=3 + n) for n in range(12)]
    assert run([*steady(build, 2), *absurd[:10]])[1] is not None
    assert run([*steady(build, 2), *absurd])[1] is None


def test_a_vanished_consumer_is_forgotten(build: Any) -> None:
    """What is no longer listed leaves no state behind."""

    def seen(t: float, **more: Any) -> Observation:
        return at(build, t, node=t, kubepods=t, **more)

    everything = {
        "pods": {"a": sample(0, throttling=CpuThrottling(1, 0))},
        "containers": {"a": {"main": sample(0)}},
        "host_applications": {"nginx": sample(0)},
        "numa": (NumaSample(0, 0, 0),),
        "burstable": sample(0),
    }
    state, _ = run([seen(0, **everything), seen(1, **everything), seen(2)])
    assert (state.pods, state.containers, state.host_applications, state.numa, state.throttles) == ({}, {}, {}, {}, {})
    assert "burstable" not in state.roots


def test_throttled_ratio(build: Any) -> None:
    """Throttled periods of all periods since the last pass, by uid."""
    usage = measured(steady(build, 2, pods=lambda t: {"a": sample(0, throttling=CpuThrottling(10 * t, 5 * t))}))
    assert usage.throttled_ratio == {"a": 0.5}


def test_statistics_of_node_and_system(build: Any) -> None:
    """Ten minutes at 1.5 CPUs, 0.5 of them outside listed pods: five and ten minutes are told, thirty are not yet."""
    state, _ = run(steady(build, 600, pods=lambda t: {"a": sample(t)}))
    found = statistics(state, (300.0, 600.0, 1800.0))
    assert [aggregate.duration_seconds for aggregate in found.node] == [300.0, 600.0]
    assert {u.cpu_millis for aggregate in found.node for u in aggregate.statistics.values()} == {1500}
    assert {u.cpu_millis for aggregate in found.system for u in aggregate.statistics.values()} == {500}


def test_ticks_between_seconds_leave_no_more_samples(build: Any) -> None:
    """At two passes a second half an hour still fits the series; for an hour there is a sample each two seconds."""
    passes = [at(build, t / 2, node=t / 2, kubepods=t / 2) for t in range(41)]
    for series_seconds, samples in ((1800.0, 20), (3600.0, 10)):
        state, _ = run(passes, msgspec.structs.replace(WINDOWS, series_seconds=series_seconds))
        assert len(state.node_series.samples) == len(state.system_series.samples) == samples * 20


def test_minute_peaks(build: Any) -> None:
    """The node's and each measured pod's; a pod with one reading, or with none for long, has none."""

    def pods(t: int) -> dict[str, Any]:
        return {"a": sample(0.5 * t, 9), "lost": sample(t) if t < 55 else GONE, "new": sample(1) if t == 70 else GONE}

    passes = steady(build, 70, pods=pods)
    peaks = minute_peaks(run(passes)[0])
    assert peaks.node == Usage(1500, 100)
    assert peaks.pods == {"a": Usage(500, 9)}
    assert minute_peaks(UsageState()).node is None


def test_minute_peaks_after_a_gap(build: Any) -> None:
    """An agent that stood still for a minute learns from what came after, of the node and of each pod."""

    def pods(t: float, used: float) -> dict[str, Any]:
        return {"pods": {"a": sample(used, 9)}}

    busy = [at(build, t, node=1.5 * t, kubepods=t, be=0.25 * t, **pods(t, 0.5 * t)) for t in range(71)]
    first = 131
    calm = [
        at(
            build,
            t,
            node=105 + 0.4 * (t - first),
            kubepods=70 + 0.2 * (t - first),
            be=17.5,
            **pods(t, 35 + 0.1 * (t - first)),
        )
        for t in range(first, first + 4)
    ]
    peaks = minute_peaks(run([*busy, *calm])[0])
    assert (peaks.node, peaks.pods) == (Usage(400, 100), {"a": Usage(100, 9)})


def test_minute_peaks_of_the_idle_and_the_lost(build: Any) -> None:
    """A pod that uses no CPU has a peak of memory; a node that was not measured for long has none."""
    idle = steady(build, 70, pods=lambda t: {"a": sample(5, 9)})
    assert minute_peaks(run(idle)[0]).pods == {"a": Usage(0, 9)}
    lost = [at(build, t, node_sample=GONE) for t in range(71, 90)]
    state, _ = run([*idle, *lost])
    assert minute_peaks(state).node is None


@pytest.mark.parametrize(
    ("cpus", "quota_us", "period_us", "limit"),
    [
        (4, -1, 100_000, 4000),
        (4, 150_000, 100_000, 1500),
        (1, 150_000, 100_000, 1000),
        (None, 2_000, 100_000, 20),
        (None, -1, 100_000, None),
        (4, None, 100_000, 4000),
        (4, 150_000, 0, 4000),
        (None, 33_333, 100_000, 333),
    ],
)
def test_best_effort_limit(cpus: int | None, quota_us: int | None, period_us: int, limit: int | None) -> None:
    """The smaller of its CPUs and its quota; a period that cannot be counts nothing."""
    assert best_effort_limit_millis(cpus, quota_us, period_us) == limit


def asking(millis: int, **more: Any) -> Container:
    return Container(f"of-{millis}", ResourceVector({BATCH_CPU: millis}), **more)


SETUP, PROXY = asking(9000), asking(20, sidecar=True)
# the pod's own request, its containers, its init containers -> milli-CPU of what runs side by side
RUNNING: dict[str, tuple[int, tuple[Container, ...], tuple[Container, ...], int]] = {
    "containers": (800, (asking(500), asking(300)), (), 800),
    "an init container is over": (9000, (asking(500),), (SETUP,), 500),
    "a sidecar stays": (9020, (asking(500),), (PROXY, SETUP), 520),
    "overhead is not theirs": (700, (asking(500),), (), 500),
    "what only an annotation tells": (0, (asking(500),), (), 0),
    "nothing": (0, (Container("main"),), (), 0),
}


@pytest.mark.parametrize(("whole", "containers", "init", "millis"), RUNNING.values(), ids=RUNNING.keys())
def test_what_a_pod_asks_for_while_it_runs(
    build: Any, whole: int, containers: tuple[Container, ...], init: tuple[Container, ...], millis: int
) -> None:
    """Containers and sidecars, as Koordinator counts; nothing once the pod has ended."""
    fields = {"containers": containers, "init_containers": init}
    pod = with_fields(build.batch("a", batch_cpu=whole), **fields)
    assert running_batch_millis(pod) == millis
    assert running_batch_millis(with_fields(pod, phase=PodPhase.FAILED)) == 0


def test_best_effort_request(build: Any) -> None:
    """batch-cpu of pods labelled BE; neither other classes nor finished pods."""
    pods = [
        build.batch("a", batch_cpu=500),
        build.batch("b", batch_cpu=250),
        build.batch("done", batch_cpu=1000, phase=PodPhase.SUCCEEDED),
        build.pod("web", batch_cpu=2000, qos=QoSClass.LS),
    ]
    pods = [with_fields(pod, containers=(Container("main", pod.spec.requests),)) for pod in pods]
    assert best_effort_request_millis(pods) == 750


def test_windows_of_a_strategy() -> None:
    """Spans and the memory policy come from the strategy; hot page cache counts as none."""
    strategy = ColocationStrategy(
        aggregate_seconds=120.0, live_window_seconds=20.0, aggregate_durations_seconds=(60.0, 3600.0)
    )
    assert windows_of(strategy, 2.0) == Windows(20.0, 120.0, 2.0, 3600.0, False)
    for policy, page_cache in (
        (MemoryCollectPolicy.WITH_PAGE_CACHE, True),
        (MemoryCollectPolicy.WITH_HOT_PAGE_CACHE, False),
    ):
        assert windows_of(ColocationStrategy(memory_collect_policy=policy)).page_cache is page_cache
    assert windows_of(ColocationStrategy(aggregate_durations_seconds=())).series_seconds == 0


def full(build: Any, t: int, pods: list[str]) -> Observation:
    return at(
        build,
        t,
        node=1.5 * t,
        kubepods=t,
        be=0.25 * t,
        pods={uid: sample(0.1 * t, throttling=CpuThrottling(t, 0)) for uid in pods},
        containers={uid: {"main": sample(0.1 * t)} for uid in pods},
        host_applications={"nginx": sample(0.05 * t)},
        numa=(NumaSample(0, t * SECOND, 5),),
    )


def test_the_order_of_pods_changes_nothing(build: Any) -> None:
    """The same pods in another order: the same state, the same usage."""
    names = ["a", "b", "c", "d"]
    forward = run([full(build, t, names) for t in range(5)])
    assert forward == run([full(build, t, names[::-1]) for t in range(5)])


def test_measuring_twice_is_measuring_once(build: Any) -> None:
    """A state is never changed from within: the same pass gives the same answer again."""
    state, _ = run([full(build, t, ["a", "b"]) for t in range(20)])
    seen = full(build, 20, ["a", "c"])
    assert measure(state, seen, WINDOWS) == measure(state, seen, WINDOWS)


def test_a_state_can_be_written_down(build: Any) -> None:
    """A replay may start from it, in either format."""
    state, _ = run([full(build, t, ["a", "b"]) for t in range(20)])
    assert msgspec.json.decode(msgspec.json.encode(state), type=UsageState) == state
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(state), type=UsageState) == state


def test_state_stays_small_over_many_passes(build: Any) -> None:
    """10,000 passes with a pod coming and one going in each: the state written down does not grow."""
    state, sizes = UsageState(), []
    for t in range(10_000):
        state, _ = measure(state, full(build, t, ["stays", f"pod-{t // 3}", f"pod-{t // 3 + 1}"]), WINDOWS)
        if t in (4_000, 9_999):
            sizes.append(len(msgspec.msgpack.encode(state)))
    assert sizes[1] <= sizes[0] * 1.02
    assert set(state.pods) == {"stays", "pod-3333", "pod-3334"}


@given(
    steps=st.lists(
        st.tuples(st.floats(-1, 20), st.integers(0, 10**11), st.integers(0, 10**11), st.integers(0, 10**13)),
        max_size=30,
    )
)
def test_usage_is_never_negative_nor_absurd(build: Any, steps: list[tuple[float, int, int, int]]) -> None:
    """Clock steps, resets and nonsense counters: every part stays within 0 and 1.1 x CPUs."""
    state, now = UsageState(), 0.0
    for step, node, pods, memory in steps:
        now = max(now + step, 0.0)
        samples = {
            "kubepods": CgroupSample(pods, memory),
            "best_effort": CgroupSample(pods // 2, memory),
            "pods": {"a": CgroupSample(pods // 3, memory)},
        }
        state, usage = measure(state, build.seen(now, node_sample=NodeSample(node, memory // 2, 2), **samples), WINDOWS)
        if usage:
            parts = (
                usage.node,
                usage.system,
                usage.unlisted_system,
                usage.online,
                usage.best_effort,
                *usage.pods.values(),
            )
            for part in parts:
                for value in (part.last, part.live, part.aggregate):
                    assert 0 <= value.cpu_millis <= 2201 and value.memory_bytes >= 0

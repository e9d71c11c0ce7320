"""Every row of the metric table has its numbers, and a number that is not known has no series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from agent.core.evict.decide import EvictionMemory, Evictions
from agent.core.evict.eviction_request import EvictionRecord, PendingVictim
from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.limit.decide import NodeLimits
from agent.core.limit.plan import Write
from agent.core.limit.shrink import ShrinkMemory
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knobs import quota_knob
from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    DiskBytes,
    MemoryEvents,
    Missing,
    NetworkBytes,
    Places,
    PodPlace,
    Stall,
)
from agent.core.observe.prediction import Prediction
from agent.ports import TickResult, WriteOutcome
from agent.report.metrics import Counters, collect
from agent.report.status import AgentStatus
from model.decision import Decision, Term, Unit
from model.metrics import AGENT, MetricSample
from model.reason import Reason
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY

COUNTERS = Counters(
    failed_ticks=lambda: 2,
    task_restarts=lambda: (("zones", 3), ("link", 0)),
    sink_failures=lambda: (("journal", 1),),
    journal_lost=lambda: 3,
    listen_failures=lambda: (("http", 2), ("grpc", 0)),
    pod_sockets=lambda: 4,
    pod_socket_refusals=lambda: 6,
    brake_cuts=lambda: 3,
    brake_unreadable=lambda: 4,
    brake_mechanisms=lambda: ("CPU counters each 100 ms",),
    early_ticks=lambda: (("cpu use", 11), ("memory mark", 0)),
    last_resort_kills=lambda: 12,
    last_resort_futile=lambda: 14,
    evictions=lambda: (("BEMemoryEvict", "evicted", 13),),
    dropped_evictions=lambda: 14,
    observing=False,
    failed_cuts=lambda: 5,
    publish_failures=lambda: 6,
    dropped_events=lambda: 15,
    link_connected=lambda: True,
    interfaces=lambda: (InterfaceTraffic("eth0", 7, 8), InterfaceTraffic("lo", 9, 9)),
    published=lambda: ((BATCH_CPU, 600),),
)


def rich(build: Any) -> TickResult:
    """A tick in which everything the agent can know is known."""
    web, job, lost = build.pod("web"), build.batch("job"), build.pod("lost")
    sample = CgroupSample(1, 1, events=MemoryEvents(oom_kill=2), disk=DiskBytes(30, 40))
    seen = build.seen(
        pods={web.uid: sample, job.uid: CgroupSample(1, 1), lost.uid: Missing("/p", Absence.GONE)},
        network={web.uid: NetworkBytes(10, 20)},
        unlisted_pods=("x", "y"),
        node_pressure=CgroupPressure(Stall(25.0, total_us=1_500_000), memory_full=Stall(1.0)),
        places=Places({job.uid: PodPlace("/kubepods/besteffort/podjob"), web.uid: PodPlace("/kubepods/podweb")}),
    )
    usage = build.usage(
        {web.uid: build.averages(400, 70), job.uid: build.averages(300, 50)},
        throttled_ratio={job.uid: 0.25},
        host_applications={"nginx": build.averages(50, 5)},
    )
    quota = Decision("cgroup/x", "cpu.max", 5000, Unit.MICROSECONDS, Reason.BRAKE, (Term("x", 5000),))
    write = Write(build.knobs.quota, 5000, -1, quota)
    pods_own = quota_knob(build.layout, "/kubepods/besteffort/podjob")
    need = Decision("node/n", "memory to free", 9, Unit.BYTES, Reason.COOLDOWN, (Term("x", 9),), "BEMemoryEvict")
    result: TickResult = build.result(
        observation=seen,
        usage=usage,
        facts=build.facts(web, job, lost, problem="NodeSLO n: x", unmet=("a", "b")),
        lending=build.lending(700, 800, mid=(90, 100)),
        prediction=Prediction(Usage(11, 12), Usage(13, 14), ()),
        limits=NodeLimits(
            {knob: Limit(knob, 5000, quota) for knob in (build.knobs.quota, pods_own)},
            None,
            root="/kubepods/besteffort",
            limited_pods=1,
        ),
        evictions=Evictions((need,), refaulted=build.decision("read back by online pods", 17, Reason.THRASHING)),
        evicting=EvictionMemory(EvictionRecord(pending={job.uid: PendingVictim({}, 0, 0)})),
        outcomes=(WriteOutcome(write, "no"), WriteOutcome(write)),
        shrink=ShrinkMemory(reclaimed_bytes=64, fruitful_steps=2, fruitless_steps=1),
        unenforced=(UnenforcedLimit("state file", Reason.STATE_NOT_SAVED, "/state: full"),),
    )
    return result


def collected(*results: TickResult, counters: Counters = COUNTERS) -> Mapping[str, list[MetricSample]]:
    status = AgentStatus(1.0, lambda: 0.0)
    for result in results:
        status.take(result)
    return collect(status, counters)


def numbers(samples: list[MetricSample]) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in samples}


SERIES: dict[str, dict[tuple[str, ...], float]] = {
    "reclaimable": {(BATCH_CPU,): 700, (BATCH_MEMORY,): 800, (MID_CPU,): 90, (MID_MEMORY,): 100},
    "published": {(BATCH_CPU,): 600},
    "prod_reclaimable": {("cpu",): 11, ("memory",): 12},
    "prod_peak": {("cpu",): 13, ("memory",): 14},
    "cpu_usage_cores": {
        ("node",): 0.7,
        ("system",): 0.1,
        ("online",): 0.4,
        ("besteffort",): 0.2,
        ("host:nginx",): 0.05,
    },
    "memory_usage_bytes": {
        ("node",): 1 << 30,
        ("system",): 1 << 29,
        ("online",): 1 << 29,
        ("besteffort",): 0,
        ("host:nginx",): 5,
    },
    "pod_cpu_usage_cores": {("default", "web", "LS"): 0.4, ("default", "job", "BE"): 0.3},
    "pod_memory_usage_bytes": {("default", "web", "LS"): 70, ("default", "job", "BE"): 50},
    "pod_throttled_ratio": {("default", "job", "BE"): 0.25},
    "pod_network_bytes_total": {("default", "web", "received"): 10, ("default", "web", "sent"): 20},
    "pod_disk_bytes_total": {("default", "web", "read"): 30, ("default", "web", "written"): 40},
    "pod_oom_kills_total": {("default", "web"): 2},
    "pressure_ratio": {("cpu", "some"): 0.25, ("memory", "full"): 0.01},
    "pressure_stalled_seconds_total": {("cpu", "some"): 1.5, ("memory", "full"): 0},
    "limit": {("cpu.cfs_quota_us", "Brake"): 5000},
    "unenforced_limits": {("state file", "StateNotSaved"): 1},
    "limited_pods": {(): 1},
    "observing": {(): 0},
    "brake_mechanism": {("CPU counters each 100 ms",): 1},
    "early_ticks_total": {("cpu use",): 11, ("memory mark",): 0},
    "eviction_need": {("BEMemoryEvict", "Cooldown"): 9},
    "read_back_bytes": {("Thrashing",): 17},
    "reclaimed_bytes_total": {(): 64},
    "reclaim_steps_total": {("freed",): 2, ("fruitless",): 1},
    "evictions_total": {("BEMemoryEvict", "evicted"): 13},
    "evictions_dropped_total": {(): 14},
    "evictions_pending": {(): 1},
    "last_resort_kills_total": {(): 12},
    "last_resort_futile_total": {(): 14},
    "write_errors": {(): 1},
    "unmeasured_pods": {(): 1},
    "unlisted_pods": {(): 2},
    "settings_not_acted_on": {(): 2},
    "configuration_invalid": {(): 1},
    "ticks_total": {(): 1},
    "late_ticks_total": {(): 0},
    "failed_ticks_total": {(): 2},
    "task_restarts_total": {("zones",): 3, ("link",): 0},
    "sink_failures_total": {("journal",): 1},
    "journal_lost_ticks_total": {(): 3},
    "listen_failures_total": {("http",): 2, ("grpc",): 0},
    "checkpoint_sockets": {(): 4},
    "checkpoint_socket_refusals_total": {(): 6},
    "brake_cuts_total": {(): 3},
    "brake_unreadable_total": {(): 4},
    "brake_failed_cuts_total": {(): 5},
    "publish_failures_total": {(): 6},
    "dropped_events_total": {(): 15},
    "link_connected": {(): 1},
    "network_bytes_total": {
        ("eth0", "received"): 7,
        ("eth0", "sent"): 8,
        ("lo", "received"): 9,
        ("lo", "sent"): 9,
    },
}


@pytest.mark.parametrize(("name", "expected"), SERIES.items(), ids=SERIES.keys())
def test_series(build: Any, name: str, expected: dict[tuple[str, ...], float]) -> None:
    """Label values and numbers of one row, after a tick in which everything is known."""
    assert numbers(collected(rich(build))[name]) == expected


def test_the_table_is_complete(build: Any) -> None:
    """Each row has a case above and at least one series, no series is outside the table, none stands twice."""
    found = collected(rich(build))
    rows = AGENT.by_name
    assert len(rows) == len(AGENT.rows) and rows.keys() == SERIES.keys() == found.keys()
    for name, samples in found.items():
        assert samples and {len(sample.labels) for sample in samples} == {len(rows[name].labels)}, name
        assert len(numbers(samples)) == len(samples), name


def test_before_the_first_tick() -> None:
    """Counters are there from the start; what a tick tells is absent, not zero."""
    found = {name for name, samples in collected().items() if samples}
    assert found == {
        *("ticks_total", "late_ticks_total", "failed_ticks_total", "publish_failures_total", "link_connected"),
        *("brake_cuts_total", "brake_unreadable_total", "brake_failed_cuts_total", "published", "network_bytes_total"),
        *("task_restarts_total", "sink_failures_total", "brake_mechanism", "early_ticks_total", "observing"),
        *("evictions_total", "evictions_dropped_total", "last_resort_kills_total"),
        *("last_resort_futile_total", "listen_failures_total", "dropped_events_total", "journal_lost_ticks_total"),
        *("checkpoint_sockets", "checkpoint_socket_refusals_total"),
    }


def test_what_is_not_known_has_no_series(build: Any) -> None:
    """A blind tick: no usage, no pressure, no prediction, no pods; the rest goes on."""
    blind = build.result(usage=None, facts=build.facts(pods=None))
    quiet = msgspec.structs.replace(COUNTERS, interfaces=tuple, published=tuple)
    found = {name for name, samples in collected(blind, counters=quiet).items() if not samples}
    assert found == {
        *("published", "prod_reclaimable", "prod_peak", "cpu_usage_cores", "memory_usage_bytes", "network_bytes_total"),
        *(name for name in SERIES if name.startswith(("pod_", "pressure_"))),
        *("limit", "unenforced_limits", "unmeasured_pods", "eviction_need", "read_back_bytes"),
    }


def test_a_pod_that_left_is_not_kept(build: Any) -> None:
    """Only the newest tick counts, however many there were."""
    found = collected(rich(build), build.result())
    assert found["pod_cpu_usage_cores"] == [] and numbers(found["ticks_total"]) == {(): 2}

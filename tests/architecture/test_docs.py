"""Generated pages are as fresh as the code, and the tables they come from say what they must."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.core.evict.decide import EvictionMemory, Evictions
from agent.core.lend.reclaimable import NodeLending
from agent.core.lend.unenforced import UnenforcedLimit
from agent.core.limit.decide import NodeLimits
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.knob_table import Strategy
from agent.core.observe.network import InterfaceTraffic
from agent.core.observe.observation import (
    CgroupPressure,
    CgroupSample,
    DiskBytes,
    Knob,
    MemoryEvents,
    NetworkBytes,
    NodeSample,
    Observation,
    Stall,
)
from agent.core.observe.prediction import Prediction
from agent.core.observe.usage import Averages, NodeUsage, UsageState
from agent.ports import ClusterFacts, TickResult
from agent.report.metrics import Counters, collect
from agent.report.status import AgentStatus
from docs import nodeslo
from docs.generate import (
    BEGIN,
    COMMAND,
    END,
    FOLDER,
    README,
    SettingRow,
    pages,
    readme,
    settings,
    short_table,
)
from kube.dialects.coverage.asking_settings import NODE_SLO_FIELDS
from kube.dialects.coverage.rows import Support
from kube.dialects.coverage.settings import ROWS as SETTINGS
from model.decision import Decision, Unit
from model.metrics import AGENT, MetricSample
from model.pod.pod import Pod
from model.reason import Reason
from model.report import Usage


@pytest.mark.parametrize("page", pages())
def test_the_page_is_as_the_code_says(page: str) -> None:
    """Whoever changes a setting or a metric also commits the page."""
    committed, fresh = (FOLDER / page).read_text().splitlines(), pages()[page].splitlines()
    stale = sorted(set(committed) ^ set(fresh))[:5]
    assert committed == fresh, f"docs/{page} is stale: run `{COMMAND}`. First differing lines: {stale}"


def test_the_short_table_is_as_the_code_says() -> None:
    """The README's, between its marks; short enough to be read there."""
    assert len(short_table().splitlines()) <= 20
    committed = README.read_text()
    assert committed == readme(committed), f"README.md is stale: run `{COMMAND}`"
    assert readme(f"a{BEGIN}old{END}b") == f"a{BEGIN}\n{short_table()}\n{END}b"
    assert readme("without marks") == "without marks"


def test_every_field_of_a_node_slo_is_told_of() -> None:
    """One that is read and missing from Koordinator's table is found here; each is told once."""
    found = nodeslo.fields()
    assert [field.path for field in found if not field.rows] == []
    assert len({field.path for field in found}) == len(found) > 100
    told = {row.field for field in found for row in field.rows}
    rows = {row.field for row in SETTINGS if row.field.partition(".")[0] in NODE_SLO_FIELDS}
    assert rows - told == set(), "a row of the table that no field leads to"


def test_every_strategy_is_told_of() -> None:
    """By which fields or settings it goes, which files it has, and a test on a real kernel for each."""
    assert set(nodeslo.REAL) == set(Strategy)
    assert {strategy for found in nodeslo.BY_FIELD.values() for strategy in found} | set(nodeslo.OWN) == set(Strategy)
    assert [test for tests in nodeslo.REAL.values() for test in tests if not (nodeslo.TESTS / test).exists()] == []
    acted = {row.field for row in SETTINGS if row.support in (Support.HONOURED, Support.PARTLY)}
    for start in nodeslo.BY_FIELD:
        assert any(field.startswith(start) for field in acted), f"{start} begins no field that is acted on"


@pytest.mark.parametrize(("program", "rows"), settings().items())
def test_every_setting_says_what_it_means(program: str, rows: list[SettingRow]) -> None:
    """Each path once; a sentence that ends in a period and leaves the table whole."""
    assert rows and len({row.path for row in rows}) == len(rows)
    assert [row.path for row in rows if not is_sentence(row.meaning)] == []


def is_sentence(text: str) -> bool:
    return text.endswith(".") and not {"|", "\n"} & set(text)


def decision(name: str) -> Decision:
    return Decision("node/n", name, 0, Unit.BYTES, Reason.COMPUTED, ())


def everything() -> TickResult:
    """A tick in which every part of the node and of one pod is known."""
    averages = Averages(Usage(1, 1), Usage(1, 1), Usage(1, 1))
    pod = Pod("default", "web", "u1")
    sample = CgroupSample(1, 1, events=MemoryEvents(oom_kill=1), disk=DiskBytes(1, 1))
    stall = Stall(1.0, 1.0, 1.0, 1)
    seen = Observation(
        at_seconds=1.0,
        monotonic_seconds=1.0,
        node_sample=NodeSample(1, 1, 1),
        kubepods=sample,
        best_effort=sample,
        pods={"u1": sample},
        network={"u1": NetworkBytes(1, 1)},
        node_pressure=CgroupPressure(stall, stall, stall, stall, stall, stall),
    )
    parts: dict[str, Any] = dict.fromkeys(("node", "system", "unlisted_system", "online", "best_effort"), averages)
    usage = NodeUsage(
        at_seconds=1.0,
        **parts,
        pods={"u1": averages},
        live_seconds=10.0,
        live_span_seconds=10.0,
        throttled_ratio={"u1": 0.5},
        host_applications={"nginx": averages},
    )
    knob = Knob("/kubepods", "", "cpu.max")
    return TickResult(
        observation=seen,
        facts=ClusterFacts(None, (pod,)),
        used=UsageState(),
        usage=usage,
        prediction=Prediction(Usage(1, 1), Usage(1, 1), ()),
        lending=NodeLending((decision("batch-cpu"),)),
        limits=NodeLimits({knob: Limit(knob, 0, decision("cpu.max"))}, None, root=knob.cgroup),
        evictions=Evictions((decision("memory to free"),), refaulted=decision("memory read back")),
        evicting=EvictionMemory(),
        brake_cuts=(),
        kills=(),
        ordered=(),
        outcomes=(),
        report=None,
        degraded_reason="",
        unenforced=(UnenforcedLimit("cpu.max", Reason.LIMIT_NOT_WRITTEN, "/cpu.max", knob),),
    )


@pytest.fixture
def collected() -> Mapping[str, list[MetricSample]]:
    """What /metrics shows after such a tick."""
    status = AgentStatus(1.0, lambda: 0.0)
    status.take(everything())
    sources: dict[str, Any] = dict.fromkeys(Counters.__struct_fields__, lambda: 1)
    sources["interfaces"] = lambda: (InterfaceTraffic("eth0", 1, 1),)
    sources["task_restarts"] = sources["sink_failures"] = sources["listen_failures"] = lambda: (("zones", 1),)
    sources["published"] = sources["early_ticks"] = lambda: (("batch-cpu", 1),)
    sources["brake_mechanisms"] = lambda: ("CPU counters",)
    sources["evictions"] = lambda: (("BEMemoryEvict", "evicted", 1),)
    return collect(status, Counters(**sources))


def test_every_metric_of_the_table_is_emitted(collected: Mapping[str, list[MetricSample]]) -> None:
    """A row without a number would be a promise in the page that nothing keeps."""
    assert [row.name for row in AGENT.rows if not collected[row.name]] == []


def test_no_series_is_outside_the_table(collected: Mapping[str, list[MetricSample]]) -> None:
    """Each series belongs to a row, has as many label values as the row has labels, and no twin."""
    labels = {row.name: row.labels for row in AGENT.rows}
    assert collected.keys() == labels.keys()
    for name, samples in collected.items():
        assert {len(sample.labels) for sample in samples} == {len(labels[name])}, name
        assert len({sample.labels for sample in samples}) == len(samples), name

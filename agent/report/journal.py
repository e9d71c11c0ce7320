"""The journal's lines: what a tick saw, was told and decided, complete enough to decide it again.

One JSON object a line. A `head` line carries layout, settings and the state before the next tick; each `tick` line
what changed since the line before: whatever is left out is as it was. So a file is read from its start, and after a
rotation or a restart a new head stands first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from agent.core.evict.eviction_request import EvictionOutcome
from agent.core.limit.brake import Cut
from agent.core.limit.shrink import ReclaimAnswer
from agent.core.limit.watch import Kill
from agent.core.observe.layout import Layout
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    CpuThrottling,
    DiskBytes,
    Knob,
    KnobReading,
    MemoryEvents,
    Missing,
    Observation,
    Places,
)
from agent.ports import ClusterFacts, KnobReadings, TickResult, WriteOutcome
from agent.settings import AgentSettings
from agent.tick import TickState
from model.decision import Decision
from model.fault import ConfigurationFault
from model.node import Node
from model.nodecolocation import NodeColocation
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.reason import Reason
from model.report import EvictionCost
from model.resources import ResourceVector
from model.topology import CpuBasics, KubeletPolicy, PodCpus, Processor, Zone

FORMAT = 4
"""Another number: fields have other names or another meaning, and a replay would decide from half a state."""


class JournalHead(msgspec.Struct, frozen=True, tag="head", tag_field="line"):
    """Where and how the agent runs, and what it remembered before the next line."""

    layout: Layout
    settings: AgentSettings
    state: TickState
    format: int = FORMAT


class SampleChange(msgspec.Struct, frozen=True, tag="cgroup", omit_defaults=True):
    """A CgroupSample; what is left out is as it was in the line before."""

    cpu_ns: int
    memory_bytes: int | UnsetType = UNSET
    page_cache_bytes: int | UnsetType = UNSET
    throttling: CpuThrottling | UnsetType | None = UNSET
    pressure: CgroupPressure | UnsetType | None = UNSET
    events: MemoryEvents | UnsetType | None = UNSET
    disk: DiskBytes | UnsetType | None = UNSET
    charge_bytes: int | UnsetType | None = UNSET
    kernel_bytes: int | UnsetType = UNSET
    kernel_caches_bytes: int | UnsetType = UNSET


_Samples = dict[str, SampleChange | Missing]


class FactsChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """ClusterFacts; what is left out is as it was in the line before.

    `pods_age_seconds` is None where the source of the pods was never heard: JSON knows no infinity.
    """

    node: Node | UnsetType | None = UNSET
    pods: tuple[Pod, ...] | UnsetType | None = UNSET
    settings: NodeSettings | UnsetType = UNSET
    settings_known: bool | UnsetType = UNSET
    colocation: NodeColocation | UnsetType = UNSET
    zones: tuple[Zone, ...] | UnsetType = UNSET
    cpu: CpuBasics | UnsetType | None = UNSET
    problem: str | UnsetType = UNSET
    processors: tuple[Processor, ...] | UnsetType = UNSET
    given_away: tuple[PodCpus, ...] | UnsetType = UNSET
    kubelet_policy: KubeletPolicy | UnsetType = UNSET
    costs: Mapping[str, EvictionCost] | UnsetType = UNSET
    unsettled: bool | UnsetType = UNSET
    settings_deleted: bool | UnsetType = UNSET
    unmet: tuple[str, ...] | UnsetType = UNSET
    unread_pods: tuple[str, ...] | UnsetType = UNSET
    acknowledged: Mapping[str, int] | UnsetType = UNSET
    zones_on_node: Mapping[int, ResourceVector] | UnsetType | None = UNSET
    pods_age_seconds: float | None = 0.0


class JournalOutcome(msgspec.Struct, frozen=True):
    """What became of the write of one knob that did not simply succeed."""

    knob: Knob
    error: str = ""
    dropped: bool = False
    cause: Reason | None = None


class TickLine(msgspec.Struct, frozen=True, tag="tick", tag_field="line", omit_defaults=True):
    """One tick. `rest` is the observation without what stands in the other fields."""

    facts: FactsChange
    rest: Observation
    roots: _Samples
    pods: _Samples
    containers: dict[str, _Samples]
    host_applications: _Samples
    knobs: tuple[tuple[Knob, KnobReading], ...]
    cuts: tuple[Cut, ...] = ()
    kills: tuple[Kill, ...] = ()
    ordered: tuple[EvictionOutcome, ...] = ()
    outcomes: tuple[JournalOutcome, ...] = ()
    decisions: tuple[Decision, ...] = ()
    places: Places | UnsetType = UNSET
    reclaimed: tuple[ReclaimAnswer, ...] = ()


class RecordedTick(msgspec.Struct, frozen=True):
    """A tick line with everything filled in."""

    facts: ClusterFacts
    observation: Observation
    cuts: tuple[Cut, ...]
    kills: tuple[Kill, ...]
    ordered: tuple[EvictionOutcome, ...]
    outcomes: tuple[JournalOutcome, ...]
    decisions: tuple[Decision, ...]
    reclaimed: tuple[ReclaimAnswer, ...]

    @property
    def knobs(self) -> KnobReadings:
        observation = self.observation
        return KnobReadings(
            observation.knobs, observation.brake_cuts, observation.last_cut_monotonic, observation.unsaved
        )


_SAMPLE_FIELDS = CgroupSample.__struct_fields__[1:]
_FACT_FIELDS = FactsChange.__struct_fields__[:-1]
_NOTHING = Missing("", Absence.GONE)
_NO_PLACES = Places()
_EMPTY = Observation(0.0, 0.0, _NOTHING, _NOTHING, _NOTHING)


class LineWriter:
    """Turns ticks into lines; remembers the tick before."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """The next line is complete by itself, as after a head."""
        self._facts: ClusterFacts | None = None
        self._last_observation = _EMPTY

    def line(self, result: TickResult) -> bytes:
        observation, before = result.observation, self._last_observation
        line = TickLine(
            facts=self._facts_change(result.facts),
            rest=msgspec.structs.replace(
                observation,
                kubepods=_NOTHING,
                best_effort=_NOTHING,
                burstable=None,
                pods={},
                containers={},
                host_applications={},
                knobs={},
                node=None,
                listed=None,
                places=_NO_PLACES,
            ),
            roots=_changes(_roots(observation), _roots(before)),
            pods=_changes(observation.pods, before.pods),
            containers={
                uid: _changes(samples, before.containers.get(uid, {}))
                for uid, samples in observation.containers.items()
            },
            host_applications=_changes(observation.host_applications, before.host_applications),
            knobs=tuple(observation.knobs.items()),
            cuts=result.brake_cuts,
            kills=result.kills,
            ordered=result.ordered,
            outcomes=tuple(_outcome(outcome) for outcome in result.outcomes if outcome.error or outcome.dropped),
            decisions=result.decisions,
            places=observation.places if _differ(observation.places, before.places) else UNSET,
            reclaimed=result.reclaimed,
        )
        self._facts, self._last_observation = result.facts, observation
        return msgspec.json.encode(line)

    def _facts_change(self, facts: ClusterFacts) -> FactsChange:
        before = self._facts
        changed: dict[str, Any] = {
            name: getattr(facts, name)
            for name in _FACT_FIELDS
            if before is None or _differ(getattr(facts, name), getattr(before, name))
        }
        age = facts.pods_age_seconds
        return FactsChange(**changed, pods_age_seconds=None if math.isinf(age) else age)


def read(lines: Iterable[bytes], where: str) -> Iterator[JournalHead | RecordedTick]:
    """The journal's content in order. Raises ConfigurationFault naming the line that cannot be read.

    A last line that was cut off, as by a power failure, ends the journal without a fault.
    """
    facts, observation, headed = ClusterFacts(None, None), _EMPTY, False
    for number, text in enumerate(lines, 1):
        if not text.endswith(b"\n"):
            return
        try:
            line = msgspec.json.decode(text, type=JournalHead | TickLine)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            fix = "give a file written by --journal of this version"
            raise ConfigurationFault(f"{where} line {number}", f"is no journal line: {error}", fix) from error
        if isinstance(line, JournalHead):
            if line.format != FORMAT:
                what = f"is of journal format {line.format}; this version reads {FORMAT}"
                raise ConfigurationFault(f"{where} line {number}", what, "replay it with the version that wrote it")
            facts, observation, headed = ClusterFacts(None, None), _EMPTY, True
            yield line
            continue
        if not headed:
            raise ConfigurationFault(f"{where} line {number}", "comes before any head line", "give the whole file")
        facts = _facts_of(line.facts, facts)
        observation = _observation_of(line, facts, observation)
        yield RecordedTick(
            facts,
            observation,
            line.cuts,
            line.kills,
            line.ordered,
            line.outcomes,
            line.decisions,
            line.reclaimed,
        )


def _roots(observation: Observation) -> dict[str, CgroupSample | Missing]:
    found = {"kubepods": observation.kubepods, "best_effort": observation.best_effort}
    return found if observation.burstable is None else {**found, "burstable": observation.burstable}


def _changes(now: Mapping[str, CgroupSample | Missing], before: Mapping[str, CgroupSample | Missing]) -> _Samples:
    return {key: _change(sample, before.get(key)) for key, sample in now.items()}


def _change(now: CgroupSample | Missing, before: CgroupSample | Missing | None) -> SampleChange | Missing:
    if isinstance(now, Missing):
        return now
    if not isinstance(before, CgroupSample):
        return SampleChange(**{name: getattr(now, name) for name in CgroupSample.__struct_fields__})
    changed = {name: getattr(now, name) for name in _SAMPLE_FIELDS if getattr(now, name) != getattr(before, name)}
    return SampleChange(now.cpu_ns, **changed)


def _samples_of(changes: _Samples, before: Mapping[str, CgroupSample | Missing]) -> dict[str, CgroupSample | Missing]:
    return {key: _sample_of(change, before.get(key)) for key, change in changes.items()}


def _sample_of(change: SampleChange | Missing, before: CgroupSample | Missing | None) -> CgroupSample | Missing:
    if isinstance(change, Missing):
        return change
    known = before if isinstance(before, CgroupSample) else CgroupSample(0, 0)
    changed = {name: v for name in _SAMPLE_FIELDS if (v := getattr(change, name)) is not UNSET}
    return msgspec.structs.replace(known, cpu_ns=change.cpu_ns, **changed)


def _facts_of(change: FactsChange, before: ClusterFacts) -> ClusterFacts:
    changed = {name: v for name in _FACT_FIELDS if (v := getattr(change, name)) is not UNSET}
    age = math.inf if change.pods_age_seconds is None else change.pods_age_seconds
    return msgspec.structs.replace(before, pods_age_seconds=age, **changed)


def _observation_of(line: TickLine, facts: ClusterFacts, before: Observation) -> Observation:
    roots = _samples_of(line.roots, _roots(before))
    containers = {uid: _samples_of(changes, before.containers.get(uid, {})) for uid, changes in line.containers.items()}
    return msgspec.structs.replace(
        line.rest,
        kubepods=roots.get("kubepods", _NOTHING),
        best_effort=roots.get("best_effort", _NOTHING),
        burstable=roots.get("burstable"),
        pods=_samples_of(line.pods, before.pods),
        containers=containers,
        host_applications=_samples_of(line.host_applications, before.host_applications),
        knobs=dict(line.knobs),
        node=facts.node,
        listed=facts.pods,
        places=before.places if line.places is UNSET else line.places,
    )


def _differ(one: object, other: object) -> bool:
    """Most facts are the very same object tick after tick, and a comparison of 250 pods is not for free."""
    return one is not other and one != other


def _outcome(outcome: WriteOutcome) -> JournalOutcome:
    return JournalOutcome(outcome.write.knob, outcome.error, outcome.dropped, outcome.cause)

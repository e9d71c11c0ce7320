"""A journal decided again: the agent's own tick with recorded ports instead of edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from agent.core.evict.eviction_request import EvictionOutcome, EvictionRecord, EvictionRequest
from agent.core.limit.brake import Cut
from agent.core.limit.plan import Write
from agent.core.limit.release import KnobClaims
from agent.core.limit.shrink import ReclaimAnswer, ReclaimOrder
from agent.core.limit.watch import Kill, Watch
from agent.core.observe.files import NO_MORE, Watched
from agent.core.observe.observation import Knob, Observation, Places
from agent.core.observe.prediction import PredictionState
from agent.ports import ClusterFacts, KnobReadings, TickPorts, TickResult, WriteOutcome
from agent.report.journal import JournalHead, RecordedTick, read
from agent.settings import AgentSettings
from agent.tick import Tick, TickState
from model.decision import Decision


class Replayed(msgspec.Struct, frozen=True):
    """One tick: what the agent decided then, and what this code decides on the same facts."""

    recorded: tuple[Decision, ...]
    result: TickResult

    @property
    def identical(self) -> bool:
        return self.recorded == self.result.decisions


class Recording:
    """Every port of the tick, answering from one recorded tick at a time."""

    def __init__(self) -> None:
        self.tick: RecordedTick | None = None
        self.newest: TickResult | None = None

    def facts(self) -> ClusterFacts:
        return self._now.facts

    def readings(self, knobs: tuple[Knob, ...], claims: KnobClaims | None = None) -> KnobReadings:
        return self._now.knobs

    def places(self, facts: ClusterFacts) -> Places:
        return self._now.observation.places

    def observe(self, facts: ClusterFacts, knobs: KnobReadings, watched: Watched = NO_MORE) -> Observation:
        return self._now.observation

    def drain(self) -> tuple[Cut, ...]:
        return self._now.cuts

    def kills(self) -> tuple[Kill, ...]:
        return self._now.kills

    def arm(self, watch: Watch) -> None:
        """Nothing to watch."""

    def apply(self, writes: tuple[Write, ...], seen_cuts: int) -> tuple[WriteOutcome, ...]:
        told = {outcome.knob: outcome for outcome in self._now.outcomes}
        return tuple(
            WriteOutcome(write, told[write.knob].error, told[write.knob].dropped, told[write.knob].cause)
            if write.knob in told
            else WriteOutcome(write)
            for write in writes
        )

    def take(self, result: TickResult) -> None:
        self.newest = result

    @property
    def ordered(self) -> tuple[EvictionOutcome, ...]:
        return self._now.ordered

    @property
    def reclaimed(self) -> tuple[ReclaimAnswer, ...]:
        return self._now.reclaimed

    @property
    def _now(self) -> RecordedTick:
        assert self.tick is not None
        return self.tick


class _RecordedReclaimer:
    """What came of reclaim when it was really asked for."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def submit(self, orders: tuple[ReclaimOrder, ...]) -> None:
        """Nothing is reclaimed."""

    def drain(self) -> tuple[ReclaimAnswer, ...]:
        return self._recording.reclaimed


class _RecordedEvictor:
    """What came of requests when they were really given."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def submit(self, requests: tuple[EvictionRequest, ...], record: EvictionRecord) -> None:
        """Nobody to ask."""

    def drain(self) -> tuple[EvictionOutcome, ...]:
        return self._recording.ordered


def replay(lines: Iterable[bytes], where: str, other: AgentSettings | None = None) -> Iterator[Replayed]:
    """Every recorded tick again, in order; with `other`, as though those settings had been in force.

    No document of the cluster overrides `other`; host applications stay as they were measured. The control files
    answer what they held then, so ceilings show what would have been decided from there. With other half-lives the
    peaks are learned from the journal alone.
    Raises ConfigurationFault where the journal cannot be read.
    """
    recording, tick, learned = Recording(), None, PredictionState()
    for line in read(lines, where):
        if isinstance(line, JournalHead):
            evictor, reclaimer = _RecordedEvictor(recording), _RecordedReclaimer(recording)
            ports = TickPorts(recording, recording, recording, recording, evictor, reclaimer)
            tick = Tick(line.layout, _settings_of(line, other), ports, (recording,))
            tick.state = line.state if other is None else _state_under(line, other, learned)
            continue
        recording.tick = line if other is None else _under(line, other)
        assert tick is not None
        result = tick.run()
        learned = tick.state.prediction
        yield Replayed(line.decisions, result)


def _settings_of(head: JournalHead, other: AgentSettings | None) -> AgentSettings:
    """How often the agent looked is a fact of the journal: under a shorter tick the recorded ones would be silences."""
    if other is None:
        return head.settings
    return msgspec.structs.replace(other, tick_seconds=head.settings.tick_seconds)


def _state_under(head: JournalHead, other: AgentSettings, learned: PredictionState) -> TickState:
    if other.prediction.half_lives == head.settings.prediction.half_lives:
        return head.state
    return msgspec.structs.replace(head.state, prediction=learned)


def _under(line: RecordedTick, other: AgentSettings) -> RecordedTick:
    settings = msgspec.structs.replace(
        line.facts.settings,
        colocation=other.colocation,
        suppress=other.suppress,
        eviction=other.eviction,
        normalization=other.normalization,
    )
    return msgspec.structs.replace(line, facts=msgspec.structs.replace(line.facts, settings=settings))

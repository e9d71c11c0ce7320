"""One turn of the agent, as a recipe. No rule about resources lives here: rules are in core, technology in edge."""

from __future__ import annotations

import msgspec

from agent.core.foresight import foresee
from agent.core.knobs import Knobs
from agent.core.limits import Memory, decide_limits
from agent.core.live import live_metric
from agent.core.plan import plan
from agent.core.prediction import PredictionState
from agent.core.publish import degraded, enforceable, report
from agent.core.reclaimable import lending
from agent.core.usage import UsageState, measure, windows_of
from agent.ports import Brake, Cluster, Executor, Observer, Sink, TickResult
from agent.settings import AgentSettings


class TickState(msgspec.Struct, frozen=True):
    """Everything one tick hands to the next; only core functions look inside."""

    usage: UsageState = UsageState()
    prediction: PredictionState = PredictionState()
    limits: Memory = Memory()


class Tick:
    """Keeps only what core functions hand back to be remembered."""

    def __init__(
        self,
        knobs: Knobs,
        settings: AgentSettings,
        cluster: Cluster,
        observer: Observer,
        executor: Executor,
        brake: Brake,
        sinks: tuple[Sink, ...],
    ) -> None:
        self._knobs = knobs
        self._settings = settings
        self._cluster = cluster
        self._observer = observer
        self._executor = executor
        self._brake = brake
        self._sinks = sinks
        self.state = TickState()

    def run(self) -> TickResult:
        """Observe, estimate, predict, compute, decide, plan, act, report, journal."""
        state = self.state
        # 1 observe
        facts = self._cluster.facts()
        owned = self._executor.readings(self._knobs.all)
        seen = self._observer.observe(facts, owned)
        cuts = self._brake.drain()
        # 2 estimate usage and windows, foresee production peaks
        used, usage = measure(state.usage, seen, windows_of(facts.settings.colocation, self._settings.tick_seconds))
        trained, foreseen = foresee(
            state.prediction, used, facts.for_prediction(seen.at_seconds), self._settings.prediction
        )
        # 3 compute reclaimable
        metric = live_metric(usage, facts.pods or (), facts.settings.host_applications, foreseen)
        known = facts.for_lending(metric, seen.at_seconds)
        lent = lending(known, facts.settings.colocation, facts.settings.normalization)
        # 4 decide limits, and lend no CPU that cannot be limited
        remembered, limits = decide_limits(
            state.limits, self._knobs, seen, usage, facts.settings.suppress, unsettled=bool(facts.problem)
        )
        lent = enforceable(lent, limits.decisions[self._knobs.quota], facts.settings.suppress)
        self.state = TickState(used, trained, remembered)
        # 5 plan writes
        writes = plan(limits.decisions, seen.knobs)
        # 6 act
        outcomes = self._executor.apply(writes, seen.brake_cuts)
        self._brake.arm(limits.brake)
        # 7 report and 8 journal
        failed = next((outcome.error for outcome in outcomes if outcome.error), "")
        why = degraded(lent.reclaimable, facts.problem or failed)
        told = report(usage, lent.final, seen.listed or (), seen.pressure, why)
        result = TickResult(seen, facts, used, usage, foreseen, lent, limits, cuts, outcomes, told, why)
        for sink in self._sinks:
            sink.take(result)
        return result

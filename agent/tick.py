"""One turn of the agent, as a recipe. No rule about resources lives here: rules are in core, technology in edge."""

from __future__ import annotations

from agent.core import brake as brake_core
from agent.core.layout import KubepodsLayout
from agent.core.limits import Knobs, Memory, decide_limits
from agent.core.plan import plan
from agent.core.publish import degraded, report
from agent.core.reclaimable import reclaimable
from agent.core.usage import UsageState, Windows, measure
from agent.ports import Brake, Cluster, Executor, Observer, Sink, TickResult


class Tick:
    """Keeps only what core functions hand back to be remembered."""

    def __init__(
        self,
        layout: KubepodsLayout,
        cluster: Cluster,
        observer: Observer,
        executor: Executor,
        brake: Brake,
        sinks: tuple[Sink, ...],
    ) -> None:
        self._knobs = Knobs.of(layout)
        self._cluster = cluster
        self._observer = observer
        self._executor = executor
        self._brake = brake
        self._sinks = sinks
        self._usage = UsageState()
        self._memory = Memory()

    def run(self) -> TickResult:
        """Observe, estimate, compute, decide, plan, act, report, journal."""
        # 1 observe
        facts = self._cluster.facts()
        owned = self._executor.readings(self._knobs.all)
        seen = self._observer.observe(facts, owned)
        cuts = tuple(brake_core.decision(cut) for cut in self._brake.drain())
        # 2 estimate usage and windows
        windows = Windows(facts.colocation.live_window_seconds, facts.colocation.aggregate_seconds)
        self._usage, usage = measure(self._usage, seen, windows)
        # 3 compute reclaimable
        lent = reclaimable(seen.node, seen.listed, usage, facts.colocation, seen.at_seconds, facts.pods_age_seconds)
        # 4 decide limits
        self._memory, limits = decide_limits(
            self._memory, self._knobs, seen, usage, facts.suppress, unsettled=bool(facts.problem)
        )
        # 5 plan writes
        writes = plan(limits.decisions, seen.knobs)
        # 6 act
        outcomes = self._executor.apply(writes, seen.brake_cuts)
        self._brake.arm(limits.brake)
        # 7 report and 8 journal
        failed = next((outcome.error for outcome in outcomes if outcome.error), "")
        why = degraded(lent, facts.problem or failed)
        facts_for_scheduler = report(usage, lent, seen.listed or (), seen.pressure, why)
        result = TickResult(seen, facts, usage, lent, limits, cuts, outcomes, facts_for_scheduler, why)
        for sink in self._sinks:
            sink.take(result)
        return result

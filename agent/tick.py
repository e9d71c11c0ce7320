"""One turn of the agent, as a recipe. No rule about resources lives here: rules are in core, technology in edge."""

from __future__ import annotations

import msgspec

from agent.core.evict.decide import EvictionMemory, decide_evictions
from agent.core.lend.offer import OfferMemory, admitted_requests, decide_offer
from agent.core.lend.reclaimable import lending
from agent.core.lend.report import degraded, report
from agent.core.lend.unenforced import (
    EnforcementMemory,
    WriteFailure,
    explained,
    find_unenforced,
    of_unread,
    within_requests,
)
from agent.core.limit.decide import LimitMemory, claims_due, decide_limits, knobs_to_read, pod_groups
from agent.core.limit.knob_schedule import NO_GROUPS
from agent.core.limit.plan import plan
from agent.core.limit.shrink import Shrinking, ShrinkMemory, decide_shrinking
from agent.core.observe.layout import Layout
from agent.core.observe.node_metric import live_metric
from agent.core.observe.prediction import PredictionState
from agent.core.observe.prediction_turn import learn_and_predict
from agent.core.observe.usage import UsageState, measure, windows_of
from agent.ports import Sink, TickPorts, TickResult, WriteOutcome
from agent.settings import AgentSettings, Mode
from model.reason import Reason


class TickState(msgspec.Struct, frozen=True):
    """Everything one tick hands to the next; only core functions look inside."""

    usage: UsageState = UsageState()
    prediction: PredictionState = PredictionState()
    limits: LimitMemory = LimitMemory()
    eviction: EvictionMemory = EvictionMemory()
    enforcement: EnforcementMemory = EnforcementMemory()
    offer: OfferMemory = OfferMemory()
    shrink: ShrinkMemory = ShrinkMemory()


class Tick:
    """Keeps only what core functions hand back to be remembered."""

    def __init__(self, layout: Layout, settings: AgentSettings, ports: TickPorts, sinks: tuple[Sink, ...]) -> None:
        self._layout = layout
        self._settings = settings
        self._ports = ports
        self._sinks = sinks
        self.state = TickState()
        self._groups = NO_GROUPS

    def run(self) -> TickResult:
        """Observe, estimate, predict, compute, decide, plan, act, report, journal."""
        state, ports = self.state, self._ports
        # 1 observe
        facts = ports.cluster.facts()
        about_limits = facts.for_limits()
        places = ports.observer.places(facts)
        wanted = (state.limits, self._layout, places, about_limits)
        self._groups = pod_groups(self._groups, *wanted)
        owned = ports.executor.readings(knobs_to_read(*wanted, self._groups), claims_due(*wanted))
        observation = ports.observer.observe(facts, owned, state.limits.watched)
        cuts, kills, ordered = ports.brake.drain(), ports.brake.kills(), ports.evictor.drain()
        reclaimed = ports.reclaimer.drain()
        # 2 estimate usage and windows, foresee production peaks
        used, usage = measure(
            state.usage, observation, windows_of(facts.settings.colocation, self._settings.tick_seconds)
        )
        trained, foreseen = learn_and_predict(
            state.prediction, used, facts.for_prediction(observation.at_seconds), self._settings.prediction
        )
        # 3 compute reclaimable
        metric = live_metric(usage, facts.pods or (), facts.settings.host_applications, foreseen)
        known = facts.for_lending(metric, observation.at_seconds, observation.barred)
        lent = lending(known, facts.settings.colocation, facts.settings.normalization)
        # 4 decide limits, what to reclaim, and evictions
        limited, limits = decide_limits(state.limits, self._layout, observation, usage, about_limits)
        sends, shrunk, shrinking = self._settings.mode is not Mode.OBSERVE, state.shrink, Shrinking()
        if sends:
            shrunk, shrinking = decide_shrinking(
                state.shrink, self._layout, observation, facts.for_shrinking(reclaimed)
            )
        about_evictions = facts.for_evictions(limits.best_effort_millis, lent.final, ordered, kills, shrinking)
        evicting, evictions = decide_evictions(state.eviction, observation, usage, about_evictions, sends=sends)
        self.state = TickState(used, trained, limited, evicting, state.enforcement, state.offer, shrunk)
        # 5 plan writes
        writes = plan(limits.limits, observation.knobs)
        # 6 act
        outcomes = ports.executor.apply(writes, observation.brake_cuts)
        ports.brake.arm(limits.watch(evictions.last_resort))
        ports.evictor.submit(evictions.requests, evicting.record)
        ports.reclaimer.submit(shrinking.orders)
        # lend no more than requested where a limit is not in force
        failures, suppresses = _failures(outcomes), facts.settings.suppress.enable
        enforcement, unenforced = find_unenforced(
            state.enforcement, limits, observation, failures, ceilings_wanted=suppresses
        )
        unenforced = (*unenforced, *of_unread(facts.unread_pods))
        admitted = admitted_requests(facts.pods or (), observation.measured)
        lent = within_requests(lent, unenforced, admitted)
        # offer what is lent, and what running pods request in any case
        silent = None if sends else Reason.OBSERVING
        offering, offered = decide_offer(
            state.offer, lent, facts.for_offer(usage, admitted, observation.monotonic_seconds, silent)
        )
        self.state = msgspec.structs.replace(self.state, enforcement=enforcement, offer=offering)
        # 7 report and 8 journal
        failed = next((outcome.error for outcome in outcomes if outcome.error), "")
        why = degraded(lent.reclaimable, facts.problem or failed)
        told = report(usage, lent.final, observation.listed or (), observation.pressure, why)
        result = TickResult(
            observation=observation,
            facts=facts,
            used=used,
            usage=usage,
            prediction=foreseen,
            lending=lent,
            limits=explained(limits, unenforced),
            evictions=evictions,
            evicting=evicting,
            brake_cuts=cuts,
            kills=kills,
            ordered=ordered,
            outcomes=outcomes,
            report=told,
            degraded_reason=why,
            unenforced=unenforced,
            offered=offered,
            reclaimed=reclaimed,
            shrink=shrunk,
        )
        for sink in self._sinks:
            sink.take(result)
        return result


def _failures(outcomes: tuple[WriteOutcome, ...]) -> tuple[WriteFailure, ...]:
    return tuple(
        WriteFailure(outcome.write.knob, outcome.cause or Reason.LIMIT_NOT_WRITTEN, outcome.error)
        for outcome in outcomes
        if outcome.error
    )

"""Runs the cycle: on events, gathered for a few milliseconds, and when time alone makes something ready."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import structlog

from kube.objects import NodeMetric, NodeResourceTopology
from model.explain import sentence
from model.queue import ROOT_QUEUE
from model.workload import WorkloadId
from scheduler.cache import facts
from scheduler.cache.long_pods import LongPods
from scheduler.cache.refusals import Refusal, described
from scheduler.core.placement.explain import MISFITS
from scheduler.cycle import Cycle
from scheduler.history import DecisionHistory
from scheduler.link.log_limit import LogLimit
from scheduler.ports import Clock, Meter
from scheduler.publish import FENCE_SECONDS, Publisher
from scheduler.settings import SchedulerSettings
from scheduler.settings_in_force import INVALID
from scheduler.steps.queue_figures import NO_QUEUE, losses, queue_label
from scheduler.steps.turn import Turn

log = structlog.get_logger()

_Word: TypeAlias = tuple[type, str]
"""What an agent writes: the kind, and the node."""
_FIGURES_SECONDS = 5.0
"""Of queues, whose shares cost something; who scrapes does not ask more often than that."""
_BREATH_SECONDS, _BREATH_SHARE = 0.02, 0.25
"""Between turns that have more to do all else has this share of what the last one took, and at most so long: hearing of
a pod, and each write, takes several passes of the event loop, of which it would get one a turn.
"""
_NODE_LINE_SECONDS = 10.0
"""Of each node a line at most so often: its agent's token offers another impossible amount as often as it likes."""
_MOST_NODE_LINES = 4096
_LONGEST_WAIT_SECONDS = 10.0
"""A turn at least this often, so that liveness can be seen."""


class Loop:
    """`enqueue` may be called by any task of the event loop; `step` is one turn, `run` takes them until `drain`.

    `turned` is set once the first turn is over. `reread` tells every pod and PodGroup again, as it is now.
    """

    def __init__(
        self,
        cycle: Cycle,
        publisher: Publisher,
        history: DecisionHistory,
        meter: Meter,
        clock: Clock,
        settings: SchedulerSettings,
    ) -> None:
        self.last_turn_seconds = clock()
        self.turned = asyncio.Event()
        self._figures_due = 0.0
        self._took_seconds = 0.0
        self.reread: Callable[[], None] = lambda: None
        self._cycle = cycle
        self._publisher = publisher
        self._history = history
        self._meter = meter
        self._clock = clock
        self._debounce = settings.debounce_seconds
        self._inbox: deque[facts.Fact] = deque()
        self._of_agents: dict[_Word, facts.Fact] = {}
        self._long = LongPods()
        self._heard: dict[_Word, float] = {}
        self._rest = settings.reread_seconds
        self._signal = asyncio.Event()
        self._draining = False
        self._told_errors: set[str] = set()
        self._node_lines: dict[str, LogLimit] = {}

    def enqueue(self, fact: facts.Fact) -> None:
        """Hand in a fact for the next turn. Of what an agent writes, and of a long pod, the newest word counts, and is
        read at times.
        """
        if isinstance(fact, facts.ObjectSeen) and isinstance(fact.change.object, NodeMetric | NodeResourceTopology):
            key = type(fact.change.object), fact.change.object.metadata.name
            self._of_agents.pop(key, None)
            self._of_agents[key] = fact
        elif isinstance(fact, facts.PodSeen) and self._long.keep(fact):
            pass
        else:
            self._inbox.append(fact)
        self._signal.set()

    async def run(self) -> None:
        """Returns only after `drain`; an exception that is no single workload's is a bug and ends the process."""
        async with asyncio.TaskGroup() as group:
            while await self._may_decide():
                turn = self.step(group)
                await self._publisher.bindings_first()
                await asyncio.sleep(self._breath()) if turn.more else await self._wait()

    async def drain(self) -> None:
        """Decide nothing any more; return once bindings that were begun have come to their end, soon in any case."""
        self._draining = True
        self._signal.set()
        await self._publisher.drain()

    async def _may_decide(self) -> bool:
        """True once decisions may be carried out, false after `drain`; waiting for the lease is not being stuck."""
        while not (self._draining or self._publisher.leading()):
            self.last_turn_seconds = self._clock()
            await asyncio.sleep(FENCE_SECONDS)
        return not self._draining

    def step(self, group: asyncio.TaskGroup) -> Turn:
        """One turn with all facts so far; its writes run in `group`."""
        self._signal.clear()
        inbox, self._inbox = self._inbox, deque()
        inbox.extend(self._words_of_agents())
        inbox.extend(self._long.take(self._clock()))
        began = time.perf_counter()
        turn = self._cycle.turn(inbox, self._clock())
        self._publisher.publish(turn, group, self.enqueue)
        if turn.reread:
            self.reread()
        self._took_seconds = time.perf_counter() - began
        self._note(turn, self._took_seconds)
        return turn

    def _breath(self) -> float:
        """How long all else goes on before the next turn, which has work already."""
        return min(_BREATH_SECONDS, self._took_seconds * _BREATH_SHARE)

    def _words_of_agents(self) -> list[facts.Fact]:
        """The newest of each agent, but of one that was heard a moment ago: one may cost a fifth of a second."""
        now = self._clock()
        self._heard = {word: at for word, at in self._heard.items() if at <= now < at + self._rest}
        due = [word for word in self._of_agents if word not in self._heard]
        self._heard.update(dict.fromkeys(due, now))
        return [self._of_agents.pop(word) for word in due]

    def _note(self, turn: Turn, seconds: float) -> None:
        """Log each change of a workload's reason once, and count."""
        self.last_turn_seconds = self._clock()
        self.turned.set()
        for decision in turn.decisions:
            if self._history.record(decision):
                log.info("decision", text=sentence(decision))
        for refusal in turn.refusals:
            if refusal.counts:
                log.warning("not acted on", kind=refusal.kind, told=refusal.message)
            else:
                self._tell_left_out(refusal)
        for event in turn.config_events:
            if event.reason != INVALID:  # which is among what was left out
                say = log.warning if event.warning else log.info
                say("configuration", config_map=event.config_map.key, reason=event.reason, told=event.message)
        for gang, message in turn.invalid_gangs:
            log.error("gang left out", gang=gang.key, error=message)
        for subject, preemption in turn.insights.items():
            if self._history.weigh(subject.text, preemption):
                log.info("preemption", text=sentence(preemption))
            self._meter.considered(preemption.reason)
        for subject, choice in turn.choices.items():
            self._history.chose(subject.text, choice)
        for subject in turn.gone:
            self._history.forget(subject.text)
        for subject, error in turn.errors:
            self._tell_error(subject, error)
        self._meter.set_aside(len(turn.errors))
        unfit = sum(d.reason in MISFITS for d in turn.decisions)
        self._meter.cycle(seconds, len(turn.batches), unfit)
        self._meter.timed_out(turn.timeouts)
        self._count_jobs(turn)
        backlog = self._cycle.backlog
        self._meter.waiting(len(backlog.candidates), backlog.parked, backlog.held)

    def _count_jobs(self, turn: Turn) -> None:
        """By the queues there are, never by a name that a pod makes up."""
        queues = self._cycle.quotas.tree.queues
        for plan in turn.plans:
            self._meter.preempted(len(plan.going))
            for queue, reason in losses(plan):
                labels = queue_label(plan.queue, queues), queue_label(queue, queues)
                self._meter.job_preempted(*labels, reason)
        for loss in turn.lost:
            self._meter.lost_work(queue_label(loss.queue, queues), loss.seconds)
        for job in sorted({loss.job for loss in turn.lost if loss.unsaved}):
            self._meter.checkpoint(job, "notice", "missed")
        for wait in turn.ended_waits:
            label = queue_label(wait.queue, queues)
            self._meter.job_ended_waiting(wait.seconds, label, wait.job_type, wait.result)
            if wait.gang:
                self._meter.gang_ended_waiting(wait.result, timed_out=wait.result == "timeout")
        if self.last_turn_seconds >= self._figures_due:
            self._figures_due = self.last_turn_seconds + _FIGURES_SECONDS
            self._meter.queues({*queues, ROOT_QUEUE, NO_QUEUE}, self._cycle.figures())

    def _tell_left_out(self, refusal: Refusal) -> None:
        more = {}
        if refusal.kind == "Node":
            limit = self._node_lines.setdefault(refusal.message.partition(": ")[0], LogLimit(_NODE_LINE_SECONDS))
            if len(self._node_lines) > _MOST_NODE_LINES:
                del self._node_lines[next(iter(self._node_lines))]
            if (untold := limit.due(self.last_turn_seconds)) is None:
                return
            more = {"untold_before": untold} if untold else {}
        log.error("object left out", kind=refusal.kind, error=refusal.message, **more)

    def _tell_error(self, subject: WorkloadId, error: Exception) -> None:
        """With a traceback once a kind: it comes again with every attempt."""
        kind = described(error)
        if kind in self._told_errors:
            log.error("workload set aside by an error of the scheduler", subject=subject.text, error=kind)
        else:
            self._told_errors.add(kind)
            log.error("workload set aside by an error of the scheduler", subject=subject.text, exc_info=error)

    async def _wait(self) -> None:
        """Until a fact comes, then a little longer to gather its companions; or until something is due."""
        known = (self._cycle.next_due(), self._long.next_due())
        due = min((each for each in known if each is not None), default=None)
        timeout = _LONGEST_WAIT_SECONDS if due is None else min(max(0.0, due - self._clock()), _LONGEST_WAIT_SECONDS)
        timeout = min(timeout, self._rest) if self._of_agents else timeout
        try:
            async with asyncio.timeout(timeout):
                await self._signal.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._debounce)

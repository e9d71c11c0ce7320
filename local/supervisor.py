"""Keeps programs running: starts them in order, restarts what crashes or hangs, stops them in reverse-of-need order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

import msgspec

from embedded.child_process import Child, ProgramFault, how_it_ended
from local.liveness import Liveness, LivenessPolicy, Probe
from local.probing import unanswered
from local.programs import Bound, Program, Ready
from local.rundir import RunDirectory
from local.staticprograms import ProgramHistory, ProgramRun
from model.fault import KubernetesFault

LONGEST_BACKOFF_SECONDS = 30.0
# A program that served this long was healthy: its next crash starts from the shortest wait again.
HEALTHY_SECONDS = 60.0


class RestartPace(msgspec.Struct, frozen=True):
    """How long to wait before the first new start, and how long for an answer of a program that runs."""

    first_backoff_seconds: float = 1.0
    patience: LivenessPolicy = LivenessPolicy()


_PACE = RestartPace()


class Supervisor:
    """Runs `programs`; `changed` is called whenever one of them became ready, `lived` also when one has ended, `tell`
    gets one line an event.
    """

    def __init__(
        self,
        run: RunDirectory,
        programs: Sequence[Program],
        tell: Callable[[str], None],
        changed: Callable[[str], None] = lambda name: None,
        pace: RestartPace = _PACE,
        lived: Callable[[], None] = lambda: None,
    ) -> None:
        self._run = run
        self._programs = programs
        self._tell = tell
        self._changed = changed
        self._pace = pace
        self._lived = lived
        self.lives: dict[str, ProgramHistory] = {}
        self._children: dict[str, Child] = {}
        self._watchers: list[asyncio.Task[None]] = []
        self.bound: dict[str, Ready] = {}

    @property
    def pids(self) -> dict[str, int]:
        """The live programs' process ids by name."""
        return {name: child.pid for name, child in self._children.items() if child.exit_code is None}

    async def start(self) -> None:
        """Start all, stage by stage, each ready before the next. Raises ProgramFault; then stop() is still due."""
        for _, stage in groupby(self._programs, key=lambda program: program.stage):
            outcomes = await asyncio.gather(*map(self._start_one, stage), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome
        self._watchers = [asyncio.create_task(self._keep(program)) for program in self._programs]

    async def wait(self) -> None:
        """Return never, unless a program that cannot be restarted has ended: then ProgramFault says which."""
        await asyncio.gather(*self._watchers)

    async def stop(self, order: Sequence[str]) -> None:
        """Stop all, in `order`; bounded by the sum of their bounds."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        bounds = {program.name: program.stop_bound_seconds for program in self._programs}
        for name in order:
            if (child := self._children.get(name)) is not None:
                await child.stop(bounds[name])

    async def _start_one(self, program: Program) -> None:
        if program.prepare is not None:
            await _done(program.name, program.prepare(self.bound))
        child = await Child.start(
            program.name,
            program.argv(self._known),
            self._run.log_of(program.name),
            self._run.ready_file_of(program.name),
        )
        self._children[program.name] = child
        self.bound[program.name] = await child.wait_ready(program.ready_bound_seconds)
        self._began(program.name, child)
        self._changed(program.name)
        self._lived()
        if program.announce is not None:
            await _done(program.name, program.announce(self.bound))

    def _began(self, name: str, child: Child) -> None:
        """This run serves."""
        before, run = self.lives.get(name), ProgramRun(child.pid, child.started_seconds, child.log_begin)
        self.lives[name] = ProgramHistory(run, before.run, before.restarts + 1) if before else ProgramHistory(run)

    def _has_ended(self, name: str, exit_code: int) -> None:
        life = self.lives[name]
        over = msgspec.structs.replace(life.run, ended_seconds=time.time(), exit_code=exit_code)
        self.lives[name] = msgspec.structs.replace(life, run=over)
        self._lived()

    @property
    def _known(self) -> Bound:
        return self.bound

    async def _keep(self, program: Program) -> None:
        backoff = self._pace.first_backoff_seconds
        while True:
            backoff = await self._outlive(program, backoff)
            self._tell(f"{self._obituary(program.name)}; restarting in {backoff:.0f} s")
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_SECONDS)
            try:
                await self._start_one(program)
                self._tell(f"{program.name} serves again (pid {self._children[program.name].pid})")
            except ProgramFault:
                await self._children[program.name].stop(program.stop_bound_seconds)

    async def _outlive(self, program: Program, backoff: float) -> float:
        """Wait for the program's end; returns how long to wait before the next start."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        code = await self._ended(program, self._children[program.name])
        self._has_ended(program.name, code)
        if not program.restart:
            fix = "its state was in memory, so the cluster ends with it"
            raise ProgramFault(program.name, self._obituary(program.name), fix, exit_code=code)
        return self._pace.first_backoff_seconds if loop.time() - since > HEALTHY_SECONDS else backoff

    async def _ended(self, program: Program, child: Child) -> int:
        """Wait for the end of one run, which may be ours to bring about; returns its exit code."""
        if program.door is None:
            return await child.wait()
        watching = asyncio.create_task(self._watch_over(program, child))
        try:
            return await child.wait()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch_over(self, program: Program, child: Child) -> None:
        """Kill a program that runs and answers no more: SIGTERM would wait for what hangs."""
        assert program.door is not None
        door, patience, loop = program.door(self.bound[program.name]), self._pace.patience, asyncio.get_running_loop()
        liveness, verdict = Liveness(patience, loop.time()), ""
        while not verdict:
            await asyncio.sleep(patience.period_seconds)
            began = loop.time()
            why = await unanswered(door, patience.answer_seconds)
            verdict = liveness.judge(Probe(began, loop.time(), why))
        if program.restart:
            self._tell(f"{program.name} {verdict}: it is killed")
            child.kill()
        else:
            self._tell(f"{program.name} {verdict}; its state is in memory, so it is left as it is")

    def _obituary(self, name: str) -> str:
        child = self._children[name]
        text = f"{name} {how_it_ended(child.exit_code)}"
        words = child.last_words()
        return text if words in text else f"{text}: {words}"


async def _done(name: str, step: Awaitable[None]) -> None:
    """What belongs to a start; its failure is the program's. Raises ProgramFault."""
    try:
        await step
    except KubernetesFault as fault:
        raise ProgramFault(name, str(fault)) from fault

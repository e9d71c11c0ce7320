"""Programs start in order, come back after a crash on the same ports, and stop in the order asked for."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from embedded.child_process import ProgramFault
from embedded.tests.dummies import alive, answering, dummy, kill, lines_of
from local.liveness import LivenessPolicy
from local.probing import ProbeAddress
from local.programs import Bound, Program
from local.rundir import RunDirectory
from local.supervisor import RestartPace, Supervisor
from model.fault import KubernetesFault


async def refused(bound: Bound) -> None:
    raise KubernetesFault("POST token", "403 no")


class Stage:
    """A supervisor of dummies in a run directory, with what it told."""

    def __init__(self, run: RunDirectory, tmp_path: Path, stages: tuple[int, ...], **crashes: float) -> None:
        self.journal = tmp_path / "journal"
        self.told: list[str] = []
        self.ready: list[str] = []
        self.programs = [
            self._program(run, name, crashes.get(name, 60.0), stage)
            for name, stage in zip(("first", "second", "third"), stages, strict=True)
        ]
        self.lives: list[tuple[int, bool]] = []
        self.supervisor = Supervisor(
            run, self.programs, self.told.append, self.ready.append, RestartPace(0.05), lived=self._lived
        )

    def _lived(self) -> None:
        if (life := self.supervisor.lives.get("second")) is not None and (
            life.restarts,
            life.run.over,
        ) not in self.lives:
            self.lives.append((life.restarts, life.run.over))

    def _program(self, run: RunDirectory, name: str, seconds: float, stage: int) -> Program:
        def argv(bound: Bound) -> list[str]:
            port = str(bound.get(name, {}).get("port", 0))
            return dummy(name, run.ready_file_of(name), self.journal, f"port={port}", seconds=seconds)

        if seconds < 0:
            return Program(name, argv, prepare=refused, stage=stage)
        restart = name != "first"
        return Program(name, argv, ready_bound_seconds=10.0, stop_bound_seconds=5.0, restart=restart, stage=stage)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(15):
            while not condition():
                await asyncio.sleep(0.02)


@asynccontextmanager
async def staged(tmp_path: Path, stages: tuple[int, ...] = (0, 1, 2), **crashes: float) -> AsyncIterator[Stage]:
    with RunDirectory(tmp_path / "run") as run:
        stage = Stage(run, tmp_path, stages, **crashes)
        try:
            await stage.supervisor.start()
            yield stage
        finally:
            await stage.supervisor.stop(("third", "second", "first"))


def test_programs_of_one_stage_start_together(tmp_path: Path) -> None:
    """All of it after the stage before; where one cannot be prepared the start fails, and the others are stopped."""

    async def story() -> Stage:
        async with staged(tmp_path, (0, 1, 1)) as stage:
            assert stage.ready[0] == "first" and set(stage.ready) == {"first", "second", "third"}
        return stage

    stage = asyncio.run(story())
    assert not any(alive(pid) for pid in stage.supervisor.pids.values())

    async def failing() -> None:
        async with staged(tmp_path / "again", (0, 1, 1), second=-1.0):
            raise AssertionError("it started")

    (tmp_path / "again").mkdir()
    with pytest.raises(ProgramFault, match="second: POST token: 403 no"):
        asyncio.run(failing())


def test_programs_start_in_order_and_stop_in_the_order_given(tmp_path: Path) -> None:
    """Each is ready before the next starts; the stop order is the caller's."""

    async def story() -> Stage:
        async with staged(tmp_path) as stage:
            assert stage.ready == ["first", "second", "third"]
        return stage

    stage = asyncio.run(story())
    assert [line.split()[0] for line in lines_of(stage.journal)[:3]] == ["first", "second", "third"]
    assert lines_of(stage.journal)[3:] == ["third stopped", "second stopped", "first stopped"]


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 0)])
def test_a_program_that_ends_is_started_again_on_its_ports(tmp_path: Path, how: signal.Signals, code: int) -> None:
    """Killed or stopped by somebody else, it comes back, with the port it first reported."""

    async def story() -> Stage:
        async with staged(tmp_path) as stage:
            before = stage.supervisor.pids["second"]
            kill(before, how)
            await stage.until(lambda: stage.ready.count("second") == 2)
            assert stage.supervisor.pids["second"] != before
            life = stage.supervisor.lives["second"]
            assert life.run.pid == stage.supervisor.pids["second"]
            assert life.previous and (life.previous.pid, life.previous.exit_code) == (before, code)
            assert stage.lives == [(0, False), (0, True), (1, False)]
        return stage

    stage = asyncio.run(story())
    starts = [line for line in lines_of(stage.journal) if line.startswith("second started")]
    assert starts == ["second started port=0", "second started port=1"]
    assert any("restarting" in line for line in stage.told)
    assert any("serves again" in line for line in stage.told)


def test_a_program_that_keeps_crashing_is_retried_with_growing_waits(tmp_path: Path) -> None:
    """Its last words are told each time; the others run on."""

    async def story() -> Stage:
        async with staged(tmp_path, second=0.2) as stage:
            await stage.until(lambda: stage.ready.count("second") >= 3)
            assert {"first", "third"} <= stage.supervisor.pids.keys()
        return stage

    stage = asyncio.run(story())
    assert any("exit code 7: the dummy had enough" in line for line in stage.told)


def test_the_end_of_a_program_that_cannot_come_back_ends_the_cluster(tmp_path: Path) -> None:
    """wait() raises, naming the program and how it ended; the rest can still be stopped."""

    async def story() -> tuple[Stage, ProgramFault]:
        async with staged(tmp_path) as stage:
            kill(stage.supervisor.pids["first"], signal.SIGKILL)
            with pytest.raises(ProgramFault) as caught:
                await asyncio.wait_for(stage.supervisor.wait(), 10)
        return stage, caught.value

    stage, fault = asyncio.run(story())
    assert fault.where == "first"
    assert "SIGKILL" in fault.what
    assert not stage.supervisor.pids


def test_a_program_that_does_not_come_up_is_named_with_its_last_words(tmp_path: Path) -> None:
    """start() raises; what had been started is stopped by stop()."""

    async def story() -> list[int]:
        with RunDirectory(tmp_path / "run") as run:
            good = Program("good", lambda bound: dummy("good", run.ready_file_of("good"), tmp_path / "journal"))
            bad = Program("bad", lambda bound: ["/bin/sh", "-c", "echo 'error: no luck' >&2; exit 3"])
            supervisor = Supervisor(run, (good, bad), lambda line: None)
            with pytest.raises(ProgramFault, match="bad: no luck") as caught:
                await supervisor.start()
            assert caught.value.exit_code == 3
            pids = list(supervisor.pids.values())
            await supervisor.stop(("bad", "good"))
            return pids

    pids = asyncio.run(story())
    assert pids
    assert not any(alive(pid) for pid in pids)


QUICK = LivenessPolicy(period_seconds=0.1, answer_seconds=0.3, silence_seconds=0.8, misses=2)


@asynccontextmanager
async def hanging(tmp_path: Path, restart: bool) -> AsyncIterator[tuple[Supervisor, list[str]]]:
    """A supervisor of one program that has been stopped like a process that hangs."""
    told: list[str] = []
    with RunDirectory(tmp_path / "run") as run:
        program = Program(
            "hangs",
            lambda bound: answering(run.ready_file_of("hangs")),
            door=lambda ready: ProbeAddress("127.0.0.1", ready["port"]),
            restart=restart,
        )
        supervisor = Supervisor(run, [program], told.append, pace=RestartPace(0.05, QUICK))
        try:
            await supervisor.start()
            kill(supervisor.pids["hangs"], signal.SIGSTOP)
            yield supervisor, told
        finally:
            for pid in supervisor.pids.values():
                kill(pid, signal.SIGCONT)
            await supervisor.stop(["hangs"])


async def said(told: list[str], words: str) -> None:
    async with asyncio.timeout(30):
        while not any(words in line for line in told):
            await asyncio.sleep(0.02)


def test_a_program_that_hangs_is_killed_and_started_again(tmp_path: Path) -> None:
    """It runs and answers nobody, SIGTERM included; why it was killed is told."""

    async def story() -> tuple[int, int, list[str]]:
        async with hanging(tmp_path, restart=True) as (supervisor, told):
            before = supervisor.pids["hangs"]
            await said(told, "serves again")
            return before, supervisor.pids["hangs"], told

    before, after, told = asyncio.run(story())
    assert before != after and not alive(before)
    assert told[0].startswith("hangs has not answered for ") and told[0].endswith(
        "(no answer within 0 s): it is killed"
    )
    assert told[1].startswith("hangs was ended by SIGKILL; restarting in")


def test_a_program_whose_state_would_go_is_only_told_of(tmp_path: Path) -> None:
    """A restart brings back nothing of what it knew; it may go on yet."""

    async def story() -> tuple[Supervisor, list[str]]:
        async with hanging(tmp_path, restart=False) as (supervisor, told):
            await said(told, "its state is in memory, so it is left as it is")
            assert supervisor.pids
            return supervisor, told

    _, told = asyncio.run(story())
    assert len(told) == 1

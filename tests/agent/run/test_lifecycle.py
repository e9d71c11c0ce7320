"""What settings and the fleet's switch make an agent do, and what makes it begin again."""

from __future__ import annotations

import asyncio

import pytest

from agent.edge.fleet import FleetState
from agent.run.lifecycle import AgentLifecycle
from agent.settings import Mode

LENDS, PAUSED, OBSERVES = FleetState(True, False), FleetState(True, True), FleetState(False, False)


class Switch:
    def __init__(self, state: FleetState) -> None:
        self.state = state


MODES: dict[str, tuple[Mode, FleetState | None, Mode]] = {
    "no switch": (Mode.ENFORCE, None, Mode.ENFORCE),
    "the switch lends": (Mode.ENFORCE, LENDS, Mode.ENFORCE),
    "the switch observes": (Mode.ENFORCE, OBSERVES, Mode.OBSERVE),
    "own settings observe, whatever the switch says": (Mode.OBSERVE, LENDS, Mode.OBSERVE),
    "a pause enforces": (Mode.ENFORCE, PAUSED, Mode.ENFORCE),
}


@pytest.mark.parametrize(("own", "state", "mode"), MODES.values(), ids=MODES)
def test_the_less_of_both_counts(own, state, mode):
    assert AgentLifecycle(own, Switch(state) if state else None).begin()[0] is mode


def turned(before: FleetState, after: FleetState) -> tuple[AgentLifecycle, bool]:
    async def run() -> tuple[AgentLifecycle, bool]:
        switch = Switch(before)
        course = AgentLifecycle(Mode.ENFORCE, switch)
        _, ending = course.begin()
        switch.state = after
        course.turned()
        return course, ending.is_set()

    return asyncio.run(run())


def test_from_lend_to_observe_it_begins_again_and_gives_up_lending():
    course, ended = turned(LENDS, OBSERVES)
    assert ended and course.gives_up_lending and not course.stopped
    assert course.begin()[0] is Mode.OBSERVE and not course.gives_up_lending


def test_from_observe_to_lend_it_begins_again():
    course, ended = turned(OBSERVES, LENDS)
    assert ended and not course.gives_up_lending and course.begin()[0] is Mode.ENFORCE


def test_a_pause_is_no_new_beginning():
    course, ended = turned(LENDS, PAUSED)
    assert not ended and course.paused


def test_a_stop_ends_whatever_runs_and_gives_up_nothing():
    """What is lent stays lent while an agent is replaced."""

    async def run() -> None:
        course = AgentLifecycle(Mode.ENFORCE, Switch(LENDS))
        _, ending = course.begin()
        course.stop()
        assert ending.is_set() and course.stopped and not course.gives_up_lending
        assert course.begin()[1].is_set()

    asyncio.run(run())

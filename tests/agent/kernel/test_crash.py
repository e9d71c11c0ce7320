"""An agent that dies at any step of what it does to the kernel leaves a tree within policy, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from agent.core.observe.observation import Knob, Value
from agent.files.controlfiles import KnobText
from agent.files.statefile import StateFile, originals_in
from tests.agent.kernel.dying import dies_at, within_policy
from tests.agent.kernel.life import Life
from tests.agent.kernel.v1_tree import V1Tree, needs_two_cpus, needs_v1

pytestmark = [pytest.mark.kernel, needs_v1, needs_two_cpus]

PODS = {"podp": 900, "podq": 300}
FIRST = (200_000, "0-1")
PLANS = {
    "the very first": (None, (60_000, "0")),
    "a surge": (FIRST, (60_000, "0")),
    "relief": ((60_000, "0"), FIRST),
    "CPUs move over": ((100_000, "0"), (100_000, "1")),
}


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    for container in ("podp/c", "podq/c"):
        made.make(container)
    yield made
    made.remove()


@pytest.mark.parametrize(("before", "after"), PLANS.values(), ids=PLANS.keys())
def test_killed_at_every_step(
    tree: V1Tree, tmp_path: Path, before: tuple[int, str] | None, after: tuple[int, str]
) -> None:
    """Best effort holds nothing looser than before the plan or than planned; the next agent finishes the plan, and
    restoring brings every byte back.
    """
    original, state, steps = tree.snapshot(), tmp_path / "agent.json", 0
    for steps in count():
        life = Life(tree, state)
        if before is not None:
            life.turn(*before)
        held, known = values(life, after), dict(life.state.originals)
        life.state.close()
        died = dies_at(steps, lambda: Life(tree, state).turn(*after))
        within_policy(held, {knob: limit.value for knob, limit in life.limits(*after).items()}, values(life, after))
        life = Life(tree, state)
        assert known.items() <= life.state.originals.items()
        life.turn(*after)
        life.executor.restore()
        life.state.close()
        assert tree.snapshot() == original, steps
        if not died:
            break
    assert steps > 10


def values(life: Life, plan: tuple[int, str]) -> dict[Knob, Value]:
    found = {knob: life.tree.files.held(knob) for knob in life.limits(*plan)}
    return {knob: held.value for knob, held in found.items() if isinstance(held, KnobText)}


def test_killed_while_restoring(tree: V1Tree, tmp_path: Path) -> None:
    """A second try brings everything back."""
    original, state = tree.snapshot(), tmp_path / "agent.json"
    for step in count():
        life = Life(tree, state)
        life.turn(60_000, "0")
        life.state.close()
        died = dies_at(step, lambda: Life(tree, state).executor.restore())
        again = Life(tree, state)
        again.executor.restore()
        again.state.close()
        assert tree.snapshot() == original, step
        if not died:
            break
    assert step > 10


def test_killed_while_giving_back(tree: V1Tree, tmp_path: Path) -> None:
    """The next agent gives back what is left; what the state file forgot says already what it said before."""
    state, knobs = tmp_path / "agent.json", [tree.pids(group) for group in ("", "podp", "podq")]
    tree.say({tree.pids("podq"): 500})
    original = tree.snapshot()
    for step in count():
        life = Life(tree, state)
        life.hold(dict.fromkeys(knobs, 100))
        life.state.close()
        assert tree.said(*knobs) == ["100"] * 3
        died = dies_at(step, lambda: Life(tree, state).give_back(knobs))
        held, known = dict(zip(knobs, tree.said(*knobs), strict=True)), originals_in(state)
        assert all(held[knob] in ("100", known.get(knob, held[knob])) for knob in knobs)
        assert all(known.get(knob) or held[knob] != "100" for knob in knobs)
        again = Life(tree, state)
        again.give_back(knobs)
        again.state.close()
        assert tree.snapshot() == original and not originals_in(state), step
        if not died:
            break
    assert step > 3


def test_killed_while_the_brake_cuts(tree: V1Tree, tmp_path: Path) -> None:
    """Quotas above the cut are out of the way before the root falls, so there is a moment to die in."""
    original, state = tree.snapshot(), tmp_path / "agent.json"
    below = tuple((tree.quota(group), 90_000) for group in ("podp", "podp/c"))
    for step in count():
        life = Life(tree, state)
        life.turn(*FIRST)
        life.state.close()
        died = dies_at(step, lambda: Life(tree, state).executor.lower(tree.quota(), 20_000, below))
        assert tree.said(tree.quota())[0] in ("20000", str(FIRST[0]))
        again = Life(tree, state)
        again.turn(20_000, "0-1")
        again.executor.restore()
        again.state.close()
        assert tree.snapshot() == original, step
        if not died:
            break
    assert step >= 3


def test_the_lock_dies_with_its_owner(tmp_path: Path) -> None:
    """The next agent does not wait for anybody."""
    knob = Knob("/kubepods", "cpu", "cpu.shares")
    assert dies_at(1, lambda: StateFile(tmp_path / "agent.json").remember({knob: "1024"}))
    state = StateFile(tmp_path / "agent.json")
    assert state.originals == {}
    state.close()

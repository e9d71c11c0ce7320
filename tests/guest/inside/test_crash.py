"""An agent that dies at any step of what it does to cgroup v2 leaves a tree within policy, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from agent.core.observe.knobs import cpuset_knob, memory_knob, pids_knob, quota_knob
from agent.core.observe.observation import Knob, Value
from tests.agent.kernel.dying import dies_at, within_policy
from tests.guest.inside.conftest import Pods
from tests.guest.inside.test_executor2 import MIB, Agent

WIDE = (200_000, 90_000, "0-1", 256 * MIB, 96 * MIB, 600)
TIGHT = (60_000, 30_000, "0", 128 * MIB, 64 * MIB, 300)
PLANS = {"the very first": (None, TIGHT), "a surge": (WIDE, TIGHT), "relief": (TIGHT, WIDE)}
Plan = tuple[int, int, str, int, int, int]


def wanted(agent: Agent, plan: Plan) -> dict[Knob, Value]:
    """Quotas, CPUs, memory.high, memory.max and pids.max of the best-effort root and a pod."""
    layout, pod = agent.layout, agent.pod
    quota, pod_quota, cpus, high, most, pids = plan
    return {
        agent.knobs.quota: quota,
        quota_knob(layout, pod): pod_quota,
        cpuset_knob(layout, layout.best_effort): cpus,
        Knob(layout.best_effort, "", "memory.high"): high,
        memory_knob(layout, pod): most,
        pids_knob(layout, pod): pids,
    }


def lives(pods: Pods, state: Path, act: Callable[[Agent], object]) -> None:
    """An agent from its start to an orderly end."""
    agent = Agent(pods, state)
    try:
        act(agent)
    finally:
        # A thread that lives while the process is forked may hold a lock for ever in the child.
        agent.executor.close()
        agent.state.close()


@pytest.mark.parametrize(("before", "after"), PLANS.values(), ids=PLANS.keys())
def test_killed_at_every_step(pods: Pods, tmp_path: Path, before: Plan | None, after: Plan) -> None:
    """Best effort holds nothing looser than before the plan or than planned; the next agent finishes the plan, and
    restoring brings every byte back.
    """
    probe = Agent(pods, tmp_path)
    original, planned = probe.snapshot(), wanted(probe, after)
    probe.state.close()

    def held() -> dict[Knob, Value]:
        found: dict[Knob, Value] = {}
        # An empty list of CPUs is the parent's.
        lives(pods, tmp_path, lambda agent: found.update((knob, agent.value(knob) or "0-1") for knob in planned))
        return found

    for step in count():
        if before is not None:
            lives(pods, tmp_path, lambda agent: agent.hold(wanted(agent, before)))
        earlier = held()
        died = dies_at(step, lambda: lives(pods, tmp_path, lambda agent: agent.turn(wanted(agent, after))))
        within_policy(earlier, planned, held())
        lives(pods, tmp_path, lambda agent: agent.hold(wanted(agent, after)))
        lives(pods, tmp_path, lambda agent: agent.executor.restore())
        assert probe.snapshot() == original, step
        if not died:
            break
    assert step > len(planned)


def test_killed_while_restoring(pods: Pods, tmp_path: Path) -> None:
    """A second try brings everything back."""
    probe = Agent(pods, tmp_path)
    original = probe.snapshot()
    probe.state.close()
    for step in count():
        lives(pods, tmp_path, lambda agent: agent.hold(wanted(agent, TIGHT)))
        died = dies_at(step, lambda: lives(pods, tmp_path, lambda agent: agent.executor.restore()))
        lives(pods, tmp_path, lambda agent: agent.executor.restore())
        assert probe.snapshot() == original, step
        if not died:
            break
    assert step > 5

"""Scores of real processes in a real cgroup: all have what their pod says, and then what they had before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.core.limit.decide import LimitFacts, LimitMemory, claims_due, decide_limits, knobs_to_read
from agent.core.limit.plan import plan
from agent.core.observe.knobs import OOM_SCORE_FILE
from agent.core.observe.observation import Places, PodPlace
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.pod.colocation import OomScores
from model.pod.pod import Pod
from model.strategy import EvictionStrategy, SuppressStrategy
from tests.agent.kernel.v1_tree import MOUNT, V1Tree, needs_v1
from tests.pods import with_fields

pytestmark = [pytest.mark.kernel, needs_v1]
SLEEP = "import time; time.sleep(600)"
OFF = SuppressStrategy(enable=False), EvictionStrategy(enable=False)


@pytest.fixture
def tree() -> Iterator[V1Tree]:
    made = V1Tree()
    made.make("podjob/main")
    yield made
    made.remove()


class Agent:
    """Ticks about one batch pod that offers itself first."""

    def __init__(self, tree: V1Tree, state: Path, build: Any) -> None:
        self.tree, self.build, self.at = tree, build, 0.0
        self.memory, self.executor = LimitMemory(), KnobExecutor(MOUNT, StateFile(state / "agent.json"))
        self.pod: Pod = with_fields(build.batch("job"), oom_scores=OomScores(900))
        place = PodPlace(tree.cgroup("podjob"), {"main": tree.cgroup("podjob/main")})
        self.places = Places({self.pod.uid: place})

    def ticks(self, count: int, *, on: bool) -> None:
        for _ in range(count):
            self.at += 1.0
            facts = LimitFacts(*OFF, (self.pod,), oom_scores=on)
            about = (self.memory, self.tree.layout, self.places, facts)
            read = self.executor.readings(knobs_to_read(*about), claims_due(*about))
            seen = self.build.seen(self.at, knobs=read.readings, places=self.places, listed=facts.pods)
            self.memory, limits = decide_limits(self.memory, self.tree.layout, seen, self.build.usage(), facts)
            writes = [write for write in plan(limits.limits, read.readings) if write.knob.file == OOM_SCORE_FILE]
            outcomes = self.executor.apply(tuple(writes), read.brake_cuts)
            assert [outcome.error for outcome in outcomes if outcome.error] == [] and self.executor.idle(20)

    @property
    def scores(self) -> list[int]:
        """Of every process of the container and below it."""
        top = MOUNT / "memory" / self.tree.cgroup("podjob/main").lstrip("/")
        found = [process for file in top.rglob("cgroup.procs") for process in file.read_text().split()]
        return [int(Path(f"/proc/{process}/oom_score_adj").read_text()) for process in found]


def test_on_and_off(tree: V1Tree, tmp_path: Path, build: Any) -> None:
    """Those in a cgroup that the container made, too; off, and by restoring, all are as before."""
    agent = Agent(tree, tmp_path, build)
    agent.ticks(2, on=True)
    tree.run("podjob/main", SLEEP)
    tree.make("podjob/main/deeper")
    tree.run("podjob/main/deeper", SLEEP)
    before = agent.scores
    assert len(before) == 2 and set(before) < set(range(900))
    agent.ticks(12, on=True)
    assert agent.scores == [900, 900]
    agent.ticks(12, on=False)
    assert set(agent.scores) == set(before)
    agent.ticks(12, on=True)
    assert set(agent.scores) == {900}
    agent.executor.restore()
    assert set(agent.scores) == set(before)

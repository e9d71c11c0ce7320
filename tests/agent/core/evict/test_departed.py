"""Pods that nobody lists any more and that run on: known by what was listed before."""

from __future__ import annotations

import msgspec

from agent.core.evict.decide import EvictionFacts, EvictionMemory, decide_evictions
from agent.core.evict.departed import DepartedPods
from agent.core.observe.observation import CgroupSample, Observation
from model.pod.pod import Pod
from model.strategy import EvictionStrategy
from tests.agent.core.evict.evicting import GIB, ROOT, Holding, batch, node, online, seen

HOG, OTHER = batch("hog", 3072), batch("other", 4096)
RUNS_ON = {f"{ROOT}/podhog": CgroupSample(0, 3 * GIB)}


def look(*holdings: Holding, unlisted: bool = False) -> Observation:
    return msgspec.structs.replace(seen(*holdings), unlisted_best_effort=RUNS_ON if unlisted else {})


def after(*looks: tuple[Observation, tuple[Pod, ...] | None]) -> list[str]:
    """The last resort's victims after these ticks."""
    memory = EvictionMemory()
    for observation, pods in looks:
        facts = EvictionFacts(node(), pods, EvictionStrategy())
        memory, found = decide_evictions(memory, observation, None, facts)
    return [victim.name for victim in found.last_resort.victims] if found.last_resort else []


def test_one_that_is_deleted_by_force_goes_first() -> None:
    """Before others that are asked to stay, in each tick for as long as its processes are there."""
    both = look(HOG, OTHER), (HOG.pod, OTHER.pod)
    gone = look(OTHER, unlisted=True), (OTHER.pod,)
    assert after(both) == ["other", "hog"]
    assert after(both, gone, gone) == ["hog", "other"]
    assert after(both, gone, (look(OTHER), (OTHER.pod,))) == ["other"]


def test_what_was_never_listed_is_nobodys_to_kill() -> None:
    """It may be new, or a static pod whose mirror is still to come; nor is an online pod ever."""
    assert after((look(OTHER, unlisted=True), (OTHER.pod,))) == ["other"]
    served = online("hog", 3072)
    assert after((look(served, OTHER), (served.pod, OTHER.pod)), (look(OTHER, unlisted=True), (OTHER.pod,))) == [
        "other"
    ]


def test_while_pods_are_unknown_nothing_is_forgotten() -> None:
    memory = DepartedPods({f"{ROOT}/podhog": HOG.pod})
    held = EvictionMemory(departed=memory)
    kept, _ = decide_evictions(held, look(unlisted=True), None, EvictionFacts(node(), None, EvictionStrategy()))
    assert kept.departed == memory

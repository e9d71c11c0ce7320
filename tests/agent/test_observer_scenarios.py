"""The observer with its real edges over every scenario: recorded and made, both versions, drivers and all runtimes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.observe.files import FILES
from agent.core.observe.observation import Absence, CgroupSample, Missing, NodeSample, Observation
from agent.core.observe.recording import Scenario, ScenarioPod
from agent.edge.cgroupfs import CgroupReader
from agent.edge.discovery import Discovery, Inotify, find_layout
from agent.edge.host import HostReader
from agent.observer import NodeObserver, ObserverSources
from agent.ports import ClusterFacts, KnobReadings
from cgroup_fixtures.scenarios import names, open_scenario, pread
from model.pod.pod import Pod
from model.pod.status import PodPhase
from tests.pods import make_pod

BROKEN = {"v1_garbage", "v1_pod_vanishes"}
PLAYED_BY_THE_LOOP = {"v1_surge"}
WHOLE = [name for name in names() if name not in BROKEN | PLAYED_BY_THE_LOOP]


class Player:
    """One scenario, observed frame by frame."""

    def __init__(self, name: str, tmp_path: Path) -> None:
        self.root = tmp_path / "node"
        self.playback = open_scenario(name, tmp_path / "made")
        self.playback.lay(0, self.root)
        self.scenario: Scenario = self.playback.scenario
        self.mount = self.root / "sys/fs/cgroup"
        self.layout = find_layout(self.mount)
        files = FILES[self.layout.version]
        self.cgroups = CgroupReader(self.mount, files, slow_passes=1, pread=pread)
        self.discovery = Discovery(self.mount, self.layout, Inotify())
        self.host = HostReader(self.root / "proc")
        sources = ObserverSources(self.discovery, self.cgroups, self.host)
        self.observer = NodeObserver(self.layout, sources, lambda: (0.0, 0.0))
        self.facts = ClusterFacts(None, tuple(map(listed, self.scenario.pods)))

    def frames(self) -> Iterator[Observation]:
        """What is seen of each frame."""
        yield self._observe()
        for number in range(1, len(self.playback.frames)):
            self.playback.lay(number, self.root)
            yield self._observe()

    def close(self) -> None:
        for edge in (self.cgroups, self.discovery, self.host):
            edge.close()

    def raw(self, cgroup: str, v1_file: str, v2_file: str) -> str:
        v1 = self.layout.version == 1
        return (
            self.mount / (f"{v1_file.split('.')[0] if v1 else '.'}{cgroup}") / (v1_file if v1 else v2_file)
        ).read_text()

    def _observe(self) -> Observation:
        self.observer.places(self.facts)
        return self.observer.observe(self.facts, KnobReadings({}, 0, None))


def listed(pod: ScenarioPod) -> Pod:
    ids = {container.name: container.id for container in pod.containers}
    return make_pod(
        "default",
        pod.name,
        f"api-{pod.name}",
        qos_label=pod.qos,
        kubernetes_qos=pod.kubernetes_qos,
        phase=PodPhase.RUNNING,
        container_ids=ids,
        cgroup_uid=pod.uid,
    )


def player(name: str, tmp_path: Path) -> Iterator[Player]:
    made = Player(name, tmp_path)
    yield made
    made.close()


@pytest.fixture(params=WHOLE)
def whole_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Player]:
    yield from player(request.param, tmp_path)


def test_everything_listed_is_measured(whole_node: Player) -> None:
    """The layout is found; node, roots, pods and containers have in every frame what the files say; no unlisted pods."""
    found, told = whole_node.layout, whole_node.scenario.layout
    assert (found.version, found.driver, found.root) == (told.version, told.driver, told.root)
    for seen in whole_node.frames():
        assert isinstance(seen.node_sample, NodeSample) and seen.unlisted_pods == ()
        assert isinstance(seen.kubepods, CgroupSample) and isinstance(seen.burstable, CgroupSample)
        for pod in whole_node.facts.pods or ():
            parts = (seen.pods[pod.uid], *seen.containers[pod.uid].values())
            assert len(parts) == 1 + len(pod.status.container_ids)
            assert all(isinstance(part, CgroupSample) for part in parts)
            path = whole_node.layout.pod(pod.status.kubernetes_qos, pod.cgroup_uid)
            assert figures(seen.pods[pod.uid]) == (cpu_ns(whole_node, path), memory_bytes(whole_node, path))


def test_a_pod_that_vanishes(tmp_path: Path) -> None:
    """Gone from frame 2 on, with its containers; the others stay."""
    for made in player("v1_pod_vanishes", tmp_path):
        absent = []
        for seen in made.frames():
            absent.append({uid for uid, found in seen.pods.items() if isinstance(found, Missing)})
            assert all(isinstance(c, Missing) for uid in absent[-1] for c in seen.containers[uid].values())
        assert absent == [set(), set(), {"api-train"}, {"api-train"}, {"api-train"}]


def test_garbage(tmp_path: Path) -> None:
    """Unreadable while it lasts, and nothing else is touched by it."""
    for made in player("v1_garbage", tmp_path):
        frames = list(made.frames())
        assert all(isinstance(found, CgroupSample) for n in (0, 4) for found in frames[n].pods.values())
        broken = [found for found in frames[1].pods.values() if isinstance(found, Missing)]
        assert broken and {found.absence for found in broken} == {Absence.UNREADABLE}
        assert isinstance(frames[1].kubepods, CgroupSample) and isinstance(frames[3].kubepods, Missing)
        assert isinstance(frames[3].node_sample, Missing) and isinstance(frames[4].node_sample, NodeSample)


@pytest.mark.parametrize(
    ("name", "has"), [("v1_recorded", True), ("v2_recorded", True), ("v1_missing_controllers", False)]
)
def test_what_the_kernel_offers_beyond_the_needed(tmp_path: Path, name: str, has: bool) -> None:
    """Pressure and disk bytes where there are any; otherwise None."""
    for made in player(name, tmp_path):
        seen = next(made.frames())
        assert isinstance(seen.best_effort, CgroupSample)
        assert (seen.best_effort.pressure is not None, seen.best_effort.disk is not None) == (has, has)
        assert seen.best_effort.events is not None and (seen.best_effort_cpus is not None) == has


def figures(found: CgroupSample | Missing) -> tuple[int, int]:
    assert isinstance(found, CgroupSample)
    return found.cpu_ns, found.memory_bytes


def cpu_ns(node: Player, cgroup: str) -> int:
    """Read the other way: by a regular expression over the whole text."""
    text = node.raw(cgroup, "cpuacct.usage", "cpu.stat")
    return int(text) if node.layout.version == 1 else int(re.findall(r"^usage_usec (\d+)$", text, re.M)[0]) * 1000


def memory_bytes(node: Player, cgroup: str) -> int:
    text = node.raw(cgroup, "memory.stat", "memory.stat")
    v1 = node.layout.version == 1
    prefix, *counts = ("total_", "rss", "shmem", "cache") if v1 else ("", "anon", "shmem", "file")

    def total(*names: str) -> int:
        return sum(map(int, re.findall(rf"^{prefix}(?:{'|'.join(names)}) (\d+)$", text, re.M)))

    listed, cache = total("inactive_anon", "active_anon", "unevictable"), total("inactive_file", "active_file")
    anonymous, shared, files = (total(name) for name in counts)
    return listed + max(min(anonymous + shared - listed, cache - max(files - shared, 0)), 0)

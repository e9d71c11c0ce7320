"""What one pass makes of listed pods, directories that exist and what was read in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agent.core.observe.files import NO_MORE, Role, Watched
from agent.core.observe.layout import Layout, PodDirectory
from agent.core.observe.observation import (
    Absence,
    CgroupPressure,
    CgroupSample,
    MemoryActivity,
    Missing,
    NetworkBytes,
    NodeSample,
    NumaSample,
    Observation,
    PidCounts,
    Places,
    PodPlace,
    Stall,
)
from agent.observer import NodeObserver, ObserverSources
from agent.ports import ClusterFacts, KnobReadings
from model.nodesettings import NodeSettings
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import KubernetesQoS
from model.report import Pressure
from model.strategy import HostApplication
from tests.pods import with_fields

HERE = Layout()
ROOTS = dict.fromkeys(("/kubepods", "/kubepods/burstable", "/kubepods/besteffort"), Role.ROOT)
WEB = "/kubepods/burstable/poduid-web"
PRESSURE = CgroupPressure(Stall(1.0), None, Stall(2.0), Stall(0.5))


class FakeCgroups:
    """Every placed cgroup has used as many ns as its path has letters."""

    def __init__(self) -> None:
        self.rosters: list[dict[str, Role]] = []
        self.passes = 0

    def place(self, roster: Mapping[str, Role]) -> None:
        self.rosters.append(dict(roster))

    def read(self, watched: Watched = NO_MORE) -> Mapping[str, CgroupSample | Missing]:
        self.passes += 1
        self.watched = watched
        return {path: sample(path) for path in self.rosters[-1]}

    def cpus(self, cgroup: str) -> int | None:
        return {"/kubepods": 4, "/kubepods/besteffort": 3}.get(cgroup)

    def quota_millis(self, cgroup: str) -> int | None:
        return {"/kubepods": 2500, "/above/kubepods": 2500, "/above": 2000}.get(cgroup)

    def memory_limit(self, cgroup: str) -> int | None:
        return 77 if cgroup == "/kubepods" else None

    def refaulted(self, cgroup: str) -> int | None:
        return {"/kubepods": 50, "/kubepods/besteffort": 20}.get(cgroup)

    def limit_hits(self, cgroup: str) -> int | None:
        return {"/kubepods": 4}.get(cgroup)

    def pids(self, cgroup: str) -> tuple[int | None, int | None]:
        return {"/kubepods": (30, 1000), "/kubepods/besteffort": (7, None)}.get(cgroup, (None, None))


class FakeNode:
    """Directories and host; what a test changes."""

    def __init__(self, layout: Layout = HERE) -> None:
        self.cgroups = FakeCgroups()
        self.found: Mapping[str, PodDirectory] = {}
        self.stalls: CgroupPressure | None = PRESSURE
        self.tasks: tuple[int, int, int] | None = (90, 30_000, 32_768)
        self.pages: tuple[int, int] | None = (60, 65_536)
        self.passes_before_host = 0
        network = {"uid-web": NetworkBytes(1, 2)}
        sources = ObserverSources(self, self.cgroups, self, lambda: network, lambda: (NumaSample(0, 1, 2),))
        self.observer = NodeObserver(layout, sources, lambda: (1000.0, 5.0))

    def pods(self) -> Mapping[str, PodDirectory]:
        return self.found

    def pids(self) -> tuple[int, int, int] | None:
        return self.tasks

    def reclaimed_pages(self) -> tuple[int, int] | None:
        return self.pages

    def sample(self) -> NodeSample | Missing:
        self.passes_before_host = self.cgroups.passes
        return NodeSample(9, 8, 2)

    def pressure(self) -> CgroupPressure | None:
        return self.stalls

    def services_waited_us(self) -> int | None:
        return 42

    def observe(self, pods: tuple[Pod, ...] | None, *applications: HostApplication) -> Observation:
        facts = ClusterFacts(None, pods, NodeSettings(host_applications=applications))
        self.observer.places(facts)
        return self.observer.observe(facts, KnobReadings({}, 7, 4.0))


def sample(path: str) -> CgroupSample:
    return CgroupSample(len(path), 1)


def gone(path: str) -> Missing:
    return Missing(path, Absence.GONE, "no such cgroup")


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


@pytest.fixture
def web(build: Any) -> Pod:
    pod: Pod = build.pod("web")
    return with_fields(pod, container_ids={"app": "c1", "sidecar": "c2"})


def test_an_empty_node(node: FakeNode) -> None:
    """Roots, host, knobs' count and the other sources; nothing else."""
    seen = node.observe(())
    assert (seen.at_seconds, seen.monotonic_seconds, seen.brake_cuts, seen.last_cut_monotonic) == (1000.0, 5.0, 7, 4.0)
    assert (seen.kubepods, seen.burstable, seen.best_effort) == tuple(sample(path) for path in ROOTS)
    assert seen.node_sample == NodeSample(9, 8, 2) and (seen.best_effort_cpus, seen.pods_cpus) == (3, 4)
    assert (seen.pods_quota_millis, seen.kubepods_memory_limit_bytes) == (2500, 77) and seen.places == Places()
    assert seen.network == {"uid-web": NetworkBytes(1, 2)} and seen.numa == (NumaSample(0, 1, 2),)
    assert (seen.pods, seen.containers, seen.host_applications, seen.unlisted_pods) == ({}, {}, {}, ())
    assert node.cgroups.rosters == [ROOTS]


def test_limits_above_kubepods_hold_for_its_pods() -> None:
    """The tightest of them; what stands between is read, too."""
    node = FakeNode(Layout("/above/kubepods"))
    assert node.observe(()).pods_quota_millis == 2000
    assert list(node.cgroups.rosters[0]) == [
        "/above/kubepods",
        "/above",
        "/above/kubepods/burstable",
        "/above/kubepods/besteffort",
    ]


def test_processes_and_threads(node: FakeNode) -> None:
    """The node's, all pods' and best effort's; nothing where the node's cannot be told."""
    assert node.observe(()).pids == PidCounts(90, 30_000, 30, 1000, 7, 32_768)
    node.tasks = None
    assert node.observe(()).pids is None


def test_pages_that_come_back(node: FakeNode) -> None:
    """What the node took, and what pods read back; nothing where the node's is not counted."""
    assert node.observe(()).memory_activity == MemoryActivity(60, 50, 20, 4, 65_536)
    node.pages = None
    assert node.observe(()).memory_activity is None


def test_the_host_is_read_after_the_cgroups(node: FakeNode) -> None:
    """A victim whose memory comes back in between is seen to hold it still, so that it is not missing twice."""
    node.observe(())
    assert node.passes_before_host == 1


def test_who_is_watched_is_read(node: FakeNode, web: Pod) -> None:
    """Each pass, as the tick says."""
    node.observe((web,))
    node.observer.observe(ClusterFacts(None, (web,)), KnobReadings({}, 7, 4.0), Watched((WEB,)))
    assert node.cgroups.watched == Watched((WEB,))


def test_pods_and_containers_by_uid_and_name(node: FakeNode, web: Pod) -> None:
    """A container whose directory does not exist is gone; one that no pod names is not read."""
    node.found = {"uid-web": PodDirectory(WEB, {"c1": f"{WEB}/c1", "pause": f"{WEB}/pause"})}
    seen = node.observe((web,))
    assert seen.pods == {"uid-web": sample(WEB)}
    assert seen.containers == {"uid-web": {"app": sample(f"{WEB}/c1"), "sidecar": gone(f"{WEB}/c2")}}
    assert node.cgroups.rosters == [{WEB: Role.POD, f"{WEB}/c1": Role.CONTAINER, **ROOTS}]


def test_a_listed_pod_without_a_directory_is_gone(node: FakeNode, web: Pod) -> None:
    """Under the path it would have, and without being looked for."""
    seen = node.observe((web,))
    assert seen.pods == {"uid-web": gone(WEB)}
    assert seen.containers == {"uid-web": {"app": gone(f"{WEB}/c1"), "sidecar": gone(f"{WEB}/c2")}}
    assert node.cgroups.rosters == [ROOTS]


def test_places_are_what_exists(node: FakeNode, web: Pod) -> None:
    """Listed pods by uid; below best effort everything, whoever owns it, parents first; the same until it changes."""
    root = "/kubepods/besteffort"
    node.found = {
        "uid-web": PodDirectory(WEB, {"c1": f"{WEB}/c1", "pause": f"{WEB}/pause"}),
        "stranger": PodDirectory(f"{root}/podz", {"c": f"{root}/podz/c"}),
        "other": PodDirectory(f"{root}/poda"),
    }
    facts = ClusterFacts(None, (web,))
    places = node.observer.places(facts)
    assert places.pods == {"uid-web": PodPlace(WEB, {"app": f"{WEB}/c1"})}
    assert places.best_effort == (f"{root}/poda", f"{root}/podz", f"{root}/podz/c")
    assert node.observer.places(facts) is places
    node.found = {}
    assert node.observer.places(facts) == Places()


@pytest.mark.parametrize(
    ("changes", "directory", "role"),
    [
        ({}, "uid-web", Role.POD),
        ({"cgroup_uid": "b60e92"}, "b60e92", Role.POD),
        ({"kubernetes_qos": KubernetesQoS.BEST_EFFORT}, "uid-web", Role.BEST_EFFORT_POD),
    ],
)
def test_where_and_how_a_pod_is_read(
    node: FakeNode, build: Any, changes: dict[str, Any], directory: str, role: Role
) -> None:
    """A static pod's cgroup has its configuration's hash; best effort is watched more closely."""
    pod = with_fields(build.pod("web"), **changes)
    node.found = {directory: PodDirectory("/kubepods/somewhere")}
    assert node.observe((pod,)).pods == {"uid-web": sample("/kubepods/somewhere")}
    assert node.cgroups.rosters[-1]["/kubepods/somewhere"] is role


def test_strangers(node: FakeNode, build: Any) -> None:
    """Directories no living listed pod owns; while the list is unknown nobody is a stranger."""
    node.found = {uid: PodDirectory(f"/kubepods/pod{uid}") for uid in ("z", "uid-web", "uid-done")}
    done = build.pod("done", phase=PodPhase.SUCCEEDED)
    seen = node.observe((build.pod("web"), done))
    assert seen.unlisted_pods == ("uid-done", "z") and set(seen.pods) == {"uid-web"} and seen.listed is not None
    unknown = node.observe(None)
    assert unknown.unlisted_pods == () and unknown.pods == {} and unknown.listed is None


def test_strangers_of_best_effort_are_read(node: FakeNode, build: Any) -> None:
    """Nobody else tells what one holds whose object is gone; what is theirs counts as before."""
    paths = ("/kubepods/besteffort/podz", "/kubepods/podweb", "/kubepods/podx")
    node.found = {uid: PodDirectory(path) for uid, path in zip(("z", "uid-web", "x"), paths, strict=True)}
    seen = node.observe((build.pod("web"),))
    assert seen.unlisted_best_effort == {paths[0]: sample(paths[0])} and set(seen.pods) == {"uid-web"}
    assert node.cgroups.rosters[-1][paths[0]] is Role.BEST_EFFORT_POD and paths[2] not in node.cgroups.rosters[-1]
    assert node.observe(None).unlisted_best_effort == {}


def test_host_applications_by_name(node: FakeNode) -> None:
    """Read like a pod; a pod root stays one."""
    seen = node.observe((), HostApplication("db", "/host/db"), HostApplication("be", "/kubepods/besteffort"))
    assert seen.host_applications == {"db": sample("/host/db"), "be": sample("/kubepods/besteffort")}
    assert node.cgroups.rosters == [{"/host/db": Role.POD, **ROOTS}]


def test_the_roster_is_settled_only_when_something_changed(node: FakeNode, web: Pod) -> None:
    """New directories, another list, other host applications; each once."""
    pods = (web,)
    node.observe(pods)
    node.observe(pods)
    assert len(node.cgroups.rosters) == 1
    node.found = {"uid-web": PodDirectory(WEB)}
    assert node.observe(pods).pods == {"uid-web": sample(WEB)}
    assert node.observe(()).pods == {}
    node.observe((), HostApplication("db", "/host/db"))
    assert len(node.cgroups.rosters) == 4


@pytest.mark.parametrize(
    ("stalls", "brief"),
    [
        (PRESSURE, Pressure(1.0, 2.0, 0.5)),
        (CgroupPressure(Stall(1.0), None, Stall(2.0)), Pressure(1.0, 2.0, 0.0)),
        (CgroupPressure(Stall(1.0)), None),
        (None, None),
    ],
)
def test_pressure_in_brief(node: FakeNode, stalls: CgroupPressure | None, brief: Pressure | None) -> None:
    """What the scheduler is told comes from the same reading."""
    node.stalls = stalls
    seen = node.observe(())
    assert (seen.node_pressure, seen.pressure) == (stalls, brief)


def test_waiting_of_the_node_s_services_is_in_the_pass(node: FakeNode) -> None:
    """As the host tells it."""
    assert node.observe(()).services_waited_us == 42

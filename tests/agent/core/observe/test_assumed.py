"""A node as its objects describe it: places, use and control files of a first tick."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.observe.assumed import AssumedNode, identified, processors, usage
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Absence, CgroupSample, Knob, Missing, NodeSample
from agent.core.observe.usage import NodeUsage
from agent.core.observe.windows import Averages
from model.node import Node
from model.nodemetric import HostApplicationMetric, NodeMetric, PodMetric
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, QoSClass
from model.report import Usage
from model.resources import CPU, ResourceVector
from model.strategy import ColocationStrategy, HostApplication
from model.topology import Processor
from tests.pods import make_pod

NOW = 1000.0
STRATEGY = ColocationStrategy(degrade_seconds=60, live_window_seconds=10)
ROOT = "/kubepods/besteffort"
WORKER = Node("n1", ResourceVector({CPU: 4000}))


def pod(name: str = "web", **fields: Any) -> Pod:
    """An online pod with one container."""
    return make_pod(**{"namespace": "shop", "name": name, "uid": name, "containers": (Container("app"),), **fields})


def batch(name: str = "job", **fields: Any) -> Pod:
    return pod(name, kubernetes_qos=KubernetesQoS.BEST_EFFORT, qos_label=QoSClass.BE, **fields)


def metric(**fields: Any) -> NodeMetric:
    """A node at 9000m and 900 bytes: 1000m outside pods, web at 3000m, job at 5000m."""
    rows = (PodMetric("shop", "web", Usage(3000, 300)), PodMetric("shop", "job", Usage(5000, 500)))
    return NodeMetric(
        **{"updated_seconds": NOW, "node": Usage(9000, 900), "system": Usage(1000, 100), "pods": rows, **fields}
    )


def measured(told: NodeMetric | None = None, now: float = NOW, *apps: HostApplication) -> NodeUsage | None:
    return usage(metric() if told is None else told, (pod(), batch()), apps, STRATEGY, now)


def assumed(*pods: Pod, version: int = 2) -> AssumedNode:
    return AssumedNode(Layout(version=version), WORKER, pods, processors(WORKER))


def host(cpu: int, **fields: Any) -> tuple[HostApplicationMetric, HostApplication]:
    return HostApplicationMetric("cache", Usage(cpu, 0)), HostApplication("cache", "/cache", **fields)


CACHE, CACHE_BELOW = host(400), host(400, below_best_effort=True)


@pytest.mark.parametrize(
    ("case", "told", "apps", "expected"),
    [
        ("each pod by its class", metric(), (), (1000, 1000, 3000, 5000)),
        ("system as what pods leave", metric(system=None, node=Usage(9500, 900)), (), (1500, 1500, 3000, 5000)),
        ("more in pods than on the node", metric(system=None, node=Usage(1, 1)), (), (0, 0, 3000, 5000)),
        ("a pod that is not listed is online", metric(pods=(PodMetric("shop", "gone", Usage(700, 0)),)), (), (1000, 1700, 700, 0)),
        ("of another namespace", metric(pods=(PodMetric("x", "job", Usage(700, 0)),)), (), (1000, 1700, 700, 0)),
        ("a host application is outside pods", metric(pods=(), host_applications=(CACHE[0],)), (CACHE[1],), (1400, 1000, 0, 0)),
        ("one that nobody configured is the system's", metric(pods=(), host_applications=(CACHE[0],)), (), (1400, 1400, 0, 0)),
        ("one below the best-effort root", metric(pods=(), host_applications=(CACHE_BELOW[0],)), (CACHE_BELOW[1],), (1000, 1000, 0, 400)),
    ],
)  # fmt: skip
def test_who_uses_what(
    case: str, told: NodeMetric, apps: tuple[HostApplication, ...], expected: tuple[int, int, int, int]
) -> None:
    """Milli-CPU outside pods, outside what is listed, of online pods, of best effort."""
    used = measured(told, NOW, *apps)
    assert used is not None
    parts = (used.system, used.unlisted_system, used.online, used.best_effort)
    assert tuple(part.last.cpu_millis for part in parts) == expected


def test_memory_of_the_system_is_what_pods_leave() -> None:
    """As CPU is: 950 bytes on the node, 300 and 500 of them in pods; where pods claim more, none."""
    for node, system in ((950, 150), (1, 0)):
        used = measured(metric(system=None, node=Usage(9500, node)))
        assert used is not None and used.system.last.memory_bytes == system


def test_which_host_applications_count_by_name() -> None:
    """Those that are configured, as the agent measures no other."""
    told = metric(host_applications=(CACHE[0], HostApplicationMetric("stray", Usage(70, 0))))
    used = measured(told, NOW, CACHE[1])
    assert used is not None and used.host_applications.keys() == {"cache"}
    assert (used.system.last.cpu_millis, used.unlisted_system.last.cpu_millis) == (1470, 1070)


def test_every_average_is_the_metrics() -> None:
    """Nothing rises or falls, and no window has to fill first."""
    used = measured()
    assert used is not None and used.live_window_full
    assert used.node == Averages(Usage(9000, 900), Usage(9000, 900), Usage(9000, 900))
    assert used.pods.keys() == {"web", "job"} and used.pods["job"].aggregate == Usage(5000, 500)


@pytest.mark.parametrize(
    ("case", "told", "now", "known"),
    [
        ("fresh", metric(), NOW, True),
        ("as old as may be", metric(), NOW + 60, True),
        ("older", metric(), NOW + 60.5, False),
        ("without time", metric(updated_seconds=None), NOW, False),
        ("without the node", metric(node=None), NOW, False),
    ],
)
def test_when_use_is_known(case: str, told: NodeMetric, now: float, known: bool) -> None:
    """As for lending: what is too old or incomplete says nothing."""
    assert (measured(told, now) is not None) is known


def test_without_a_metric_nothing_is_known() -> None:
    """No NodeMetric, no use."""
    assert usage(None, (pod(),), (), STRATEGY, NOW) is None


SIDECAR: dict[str, Any] = {"init_containers": (Container("setup"), Container("proxy", sidecar=True))}


@pytest.mark.parametrize(
    ("case", "given", "expected"),
    [
        ("a container by name", pod(), ("/kubepods/burstable/podweb", {"app": "app"})),
        ("by its runtime's id", pod(container_ids={"app": "c1"}), ("/kubepods/burstable/podweb", {"app": "c1"})),
        ("sidecars stay", pod(**SIDECAR), ("/kubepods/burstable/podweb", {"app": "app", "proxy": "proxy"})),
        ("a static pod", pod(cgroup_uid="hash"), ("/kubepods/burstable/podhash", {"app": "app"})),
        ("best effort", batch(), (f"{ROOT}/podjob", {"app": "app"})),
        ("guaranteed", pod(kubernetes_qos=KubernetesQoS.GUARANTEED), ("/kubepods/podweb", {"app": "app"})),
    ],
)
def test_where_a_pod_is(case: str, given: Pod, expected: tuple[str, dict[str, str]]) -> None:
    """Below its Kubernetes class, with the containers that stay."""
    place = assumed(given).places.pods[given.uid]
    path, containers = expected
    assert place.path == path
    assert place.containers == {name: f"{path}/{directory}" for name, directory in containers.items()}


def test_what_is_below_the_best_effort_root() -> None:
    """Parents first; neither online pods nor finished ones."""
    found = assumed(pod(), batch("b"), batch("a"), batch("done", phase=PodPhase.SUCCEEDED)).places
    assert found.best_effort == (f"{ROOT}/poda", f"{ROOT}/podb", f"{ROOT}/poda/app", f"{ROOT}/podb/app")
    assert found.pods.keys() == {"web", "a", "b"}


def test_a_systemd_node() -> None:
    """The layout names the directories."""
    layout = Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD)
    place = AssumedNode(layout, WORKER, (batch(),)).places.pods["job"]
    assert place.path == "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podjob.slice"


def test_every_pod_gets_a_uid_of_its_own() -> None:
    """Manifests carry none, or the one of the pod they were copied from."""
    static = pod("e", uid="", cgroup_uid="hash")
    pods = identified(
        (pod("a", uid=""), pod("b", uid=""), pod("c", uid="u"), pod("d", uid="u", cgroup_uid="u"), static)
    )
    assert [found.uid for found in pods] == ["shop_a", "shop_b", "u", "shop_d", "shop_e"]
    paths = [place.path.rpartition("/")[2] for place in assumed(*pods).places.pods.values()]
    assert paths == ["podshop_a", "podshop_b", "podu", "podshop_d", "podhash"]


@pytest.mark.parametrize(
    ("version", "controller", "file", "expected"),
    [
        (2, "", "cpu.max", -1),
        (2, "", "cpu.weight", 1),
        (2, "", "cpu.idle", 0),
        (2, "", "cpuset.cpus", ""),
        (2, "", "memory.max", -1),
        (2, "", "memory.high", -1),
        (2, "", "memory.min", 0),
        (2, "", "memory.oom.group", 0),
        (1, "cpu", "cpu.cfs_quota_us", -1),
        (1, "cpu", "cpu.cfs_period_us", 100_000),
        (1, "cpu", "cpu.shares", 2),
        (1, "cpu", "cpu.idle", 0),
        (1, "cpuset", "cpuset.cpus", "0-3"),
        (1, "memory", "memory.limit_in_bytes", -1),
    ],
)
def test_an_untouched_file(version: int, controller: str, file: str, expected: int | str) -> None:
    """What kubelet and kernel leave there, and nobody's mark on it."""
    knob = Knob(ROOT, controller, file)
    reading = assumed(version=version).readings([knob])[knob]
    assert (reading.kernel, reading.last_written, reading.original) == (expected, None, None)


@pytest.mark.parametrize(("version", "file"), [(1, "memory.min"), (2, "memory.wmark_ratio"), (1, "memory.priority")])
def test_a_file_of_another_kernel(version: int, file: str) -> None:
    """Cgroup v1 protects no memory, and only one vendor's kernel has watermarks of cgroups."""
    knob = Knob(ROOT, "", file)
    held = assumed(version=version).readings([knob])[knob].kernel
    assert isinstance(held, Missing) and held.absence is Absence.GONE


def test_a_file_nobody_thought_of_is_not_guessed() -> None:
    """It counts as unreadable, so that nothing is decided by it."""
    knob, pids = Knob(ROOT, "", "io.max"), Knob(ROOT, "", "pids.max")
    found = assumed().readings([knob, pids])
    assert isinstance(found[knob].kernel, Missing) and pids not in found


@pytest.mark.parametrize(("millis", "expected"), [(2500, (0, 1)), (999, ()), (0, ()), (2**53, tuple(range(8192)))])
def test_processors_of_a_capacity(millis: int, expected: tuple[int, ...]) -> None:
    """Whole CPUs; as many as Linux knows, whatever the Node says."""
    found = processors(Node("n", ResourceVector({CPU: millis})))
    assert tuple(p.cpu for p in found) == expected
    assert set(found) == {Processor(cpu, cpu, 0, 0) for cpu in expected}


def test_what_a_first_pass_sees() -> None:
    """Levels of memory where they are known, absences elsewhere; the files as they were read."""
    node = assumed(pod(), batch(), batch("new"))
    held = node.readings([Knob(ROOT, "", "cpu.max")])
    seen = node.observation(held, measured(), NOW)
    assert seen.node_sample == NodeSample(0, 900, 4)
    assert seen.kubepods == CgroupSample(0, 800, charge_bytes=800)
    assert seen.best_effort == CgroupSample(0, 500, charge_bytes=500)
    assert seen.pods["job"] == CgroupSample(0, 500) and isinstance(seen.pods["new"], Missing)
    assert (seen.best_effort_cpus, seen.knobs, seen.node, seen.places) == (4, held, WORKER, node.places)


def test_what_a_first_pass_sees_without_a_metric() -> None:
    """Nothing is measured, and the pods and files are still there."""
    seen = assumed(batch()).observation({}, None, NOW)
    absent = (seen.node_sample, seen.kubepods, seen.best_effort, seen.pods["job"])
    assert all(isinstance(sample, Missing) for sample in absent)
    assert seen.places.pods.keys() == {"job"}

"""Batch pods are limited by the batch resources they asked for, worked by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent.core.limit.pod_limits import pod_knobs, pod_limits
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.layout import CgroupDriver, Layout
from agent.core.observe.observation import Places, PodPlace
from model.pod.pod import Pod
from model.pod.spec import Container
from model.pod.status import PodPhase
from model.qos import KubernetesQoS, PriorityBand, QoSClass
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from tests.pods import make_pod

V1 = Layout("/kubepods")
V2 = Layout("/kubepods.slice", 2, CgroupDriver.SYSTEMD)
PATH = "/kubepods/besteffort/podx"
MI = 1 << 20


def container(
    name: str, cpu: Any = None, memory: Any = None, *, limits: bool = True, sidecar: bool = False
) -> Container:
    asked = {BATCH_CPU: cpu, BATCH_MEMORY: memory}
    amounts = ResourceVector({resource: amount for resource, amount in asked.items() if amount is not None})
    return Container(name, amounts, amounts if limits else ResourceVector(), sidecar)


def pod(*containers: Container, inits: tuple[Container, ...] = (), **more: Any) -> Pod:
    known = {"qos_label": QoSClass.BE, "kubernetes_qos": KubernetesQoS.BEST_EFFORT, "init_containers": inits}
    return make_pod("ns", "x", "uid-x", containers=containers, **{**known, **more})


def places(of: Pod, path: str = PATH) -> Places:
    inside = {c.name: f"{path}/{c.name}" for c in (*of.spec.containers, *of.spec.init_containers)}
    return Places({of.uid: PodPlace(path, inside)}, (path, *inside.values()))


def decided(of: Pod, layout: Layout = V1, path: str = PATH, **more: Any) -> dict[tuple[str, str], Limit]:
    """By what follows the pod's path, and the file."""
    known = {"ratio": None, "root_quota_us": -1, "in_use": {}, **more}
    where = places(of, path)
    found = pod_limits(layout, where, (of,), known["ratio"], known["root_quota_us"], known["in_use"], 7.0)
    assert tuple(found) == pod_knobs(layout, where, (of,))
    assert all(limit.value == limit.decision.value and limit.decision.at_seconds == 7.0 for limit in found.values())
    return {(knob.cgroup.removeprefix(path), knob.file): limit for knob, limit in found.items()}


def values(of: Pod, layout: Layout = V1, path: str = PATH, **more: Any) -> dict[tuple[str, str], Any]:
    return {key: limit.value for key, limit in decided(of, layout, path, **more).items()}


SHARES, QUOTA, MEMORY = "cpu.shares", "cpu.cfs_quota_us", "memory.limit_in_bytes"


def test_a_pod_and_its_container() -> None:
    """500m: 512 shares, half a CPU; 64 MiB; the pod the same."""
    found = values(pod(container("main", 500, 64 * MI)))
    expected = {SHARES: 512, QUOTA: 50_000, MEMORY: 64 * MI}
    assert found == {(group, file): value for group in ("", "/main") for file, value in expected.items()}


def test_cgroup_v2() -> None:
    """The weight by the linear conversion, memory.max, and a quota above the root's is no matter."""
    path = V2.pod(KubernetesQoS.BEST_EFFORT, "uid-x")
    found = values(pod(container("main", 4000, 64 * MI)), V2, path, root_quota_us=1000)
    weight = 1 + (4096 - 2) * 9999 // 262142
    assert found == {
        (group, file): value
        for group in ("", "/main")
        for file, value in {"cpu.weight": weight, "cpu.max": 400_000, "memory.max": 64 * MI}.items()
    }


POD_CASES: dict[str, tuple[Pod, dict[str, Any]]] = {
    "containers together": (
        pod(container("a", 500, 64 * MI), container("b", 250, 32 * MI)),
        {SHARES: 768, QUOTA: 75_000, MEMORY: 96 * MI},
    ),
    "a sidecar counts beside them": (
        pod(container("a", 500, 64 * MI), inits=(container("s", 250, 32 * MI, sidecar=True),)),
        {SHARES: 768, QUOTA: 75_000, MEMORY: 96 * MI},
    ),
    "a larger init container counts instead": (
        pod(container("a", 500, 64 * MI), inits=(container("i", 1000, 32 * MI),)),
        {SHARES: 1024, QUOTA: 100_000, MEMORY: 64 * MI},
    ),
    "an init container runs beside the sidecars before it": (
        pod(
            container("a", 500, 64 * MI),
            inits=(
                container("s", 250, MI, sidecar=True),
                container("i", 600, MI),
                container("t", 50, MI, sidecar=True),
            ),
        ),
        {SHARES: 870, QUOTA: 85_000, MEMORY: 66 * MI},
    ),
    "no limit of one is no limit of all": (
        pod(container("a", 500, 64 * MI), container("b", 250, 32 * MI, limits=False)),
        {SHARES: 768, QUOTA: -1, MEMORY: -1},
    ),
    "a limit of 0 is none": (pod(container("a", 0, 0)), {SHARES: 2, QUOTA: -1, MEMORY: -1}),
    "only CPU: memory is left alone": (pod(container("a", 500)), {SHARES: 512, QUOTA: 50_000}),
    "only memory: CPU is left alone": (pod(container("a", None, MI)), {MEMORY: MI}),
    "one without batch resources has no limit": (
        pod(container("a", 500, MI), Container("b")),
        {SHARES: 512, QUOTA: -1, MEMORY: -1},
    ),
    "the kernel's bounds": (pod(container("a", 1, 100)), {SHARES: 2, QUOTA: 1000, MEMORY: 4096}),
    "more shares than there are": (pod(container("a", 500_000)), {SHARES: 262_144, QUOTA: 50_000_000}),
    "whole pages": (pod(container("a", None, 1_000_000)), {MEMORY: 999_424}),
    "a limit without a request is both": (
        pod(Container("a", limits=ResourceVector({BATCH_CPU: 500}))),
        {SHARES: 512, QUOTA: 50_000},
    ),
}


@pytest.mark.parametrize(("given", "expected"), POD_CASES.values(), ids=POD_CASES.keys())
def test_the_pod(given: Pod, expected: dict[str, Any]) -> None:
    """Kubernetes' effective rule: what runs at one time."""
    assert {file: value for (group, file), value in values(given).items() if not group} == expected


def test_many_containers() -> None:
    """The cost of a pod grows as its containers do, and not with their square; the record names the first of them."""
    asked: list[str] = []

    class Counted(ResourceVector, frozen=True):
        def __getitem__(self, name: str) -> int:
            asked.append(name)
            return super().__getitem__(name)

    amounts = Counted({BATCH_CPU: 1, BATCH_MEMORY: MI})
    inits = tuple(Container(f"i{number}", amounts, amounts, sidecar=True) for number in range(300))
    found = decided(pod(container("main", 1, MI), inits=inits))
    assert {key[1]: limit.value for key, limit in found.items() if not key[0]} == {
        SHARES: 308,
        QUOTA: 30_100,
        MEMORY: 301 * MI,
    }
    assert len(asked) < 100 * len(inits)
    assert found["", MEMORY].decision.terms[0].note.endswith(", i14 1Mi and 285 more")


HUGE = 1 << 53
LARGEST: dict[str, tuple[Layout, tuple[str, str]]] = {
    "v1": (V1, (QUOTA, MEMORY)),
    "v2": (V2, ("cpu.max", "memory.max")),
}


@pytest.mark.parametrize(("layout", "files"), LARGEST.values(), ids=LARGEST)
def test_more_than_the_kernel_takes(layout: Layout, files: tuple[str, str]) -> None:
    """A limit no machine can meet is one the kernel still takes: a refused write would be told each second."""
    path = layout.pod(KubernetesQoS.BEST_EFFORT, "uid-x")
    found = values(pod(*(container(f"c{n}", HUGE, HUGE) for n in range(1100))), layout, path)
    assert (found["", files[0]], found["", files[1]]) == ((1 << 44) - 1, HUGE)


def test_a_container_without_batch_resources_is_left_alone() -> None:
    """Only those that ask are limited themselves."""
    found = values(pod(container("a", 500, MI), Container("b")))
    assert {group for group, _ in found} == {"", "/a"}


@pytest.mark.parametrize(
    "other",
    [
        pod(container("a", 500, MI), qos_label=QoSClass.NONE),
        pod(container("a", 500, MI), qos_label=QoSClass.LS),
        pod(container("a", 500, MI), phase=PodPhase.SUCCEEDED),
        pod(Container("a")),
        pod(),
    ],
    ids=["no label", "online", "ended", "no batch resources", "no containers"],
)
def test_whom_it_leaves_alone(other: Pod) -> None:
    """Only the raw label counts, as in Koordinator."""
    assert values(other) == {}


@pytest.mark.parametrize("outside", ["/kubepods/podx", "/kubepods/burstable/podx", "/kubepods/besteffort-not/podx"])
def test_a_pod_outside_the_best_effort_root_is_left_alone(outside: str) -> None:
    """The kubelet limits it, whatever its labels and its batch resources say."""
    claims = pod(container("a", 256_000, 900 << 30), kubernetes_qos=KubernetesQoS.BURSTABLE)
    assert values(claims, path=outside) == {} != values(claims)


def test_native_limits_are_never_loosened() -> None:
    """Batch limits above them change nothing; where there is no batch limit they count alone."""
    native, more = {"cpu": 250, "memory": MI}, {BATCH_CPU: 256_000, BATCH_MEMORY: 900 << 30}
    above = Container("a", ResourceVector(more), ResourceVector({**more, **native}))
    without = Container("a", ResourceVector(more), ResourceVector(native))
    for each in (above, without):
        found = values(pod(each))
        assert {found["", QUOTA], found["/a", QUOTA]} == {25_000} and found["", MEMORY] == found["/a", MEMORY] == MI


def test_a_pod_without_a_cgroup_is_left_alone() -> None:
    """It has ended, or was not started yet."""
    assert pod_limits(V1, Places(), (pod(container("a", 500)),), None, -1, {}) == {}


@pytest.mark.parametrize(
    ("ratio", "expected"), [(None, 50_000), (1.0, 50_000), (0.5, 50_000), (1.2, 41_667), (3, 16_667)]
)
def test_normalization(ratio: float | None, expected: int) -> None:
    """A faster CPU needs less time for the same work; rounded up."""
    assert values(pod(container("a", 500)), ratio=ratio)["", QUOTA] == expected


@pytest.mark.parametrize(("root", "expected"), [(-1, 50_000), (50_000, 50_000), (49_999, -1)])
def test_v1_quota_above_the_root(root: int, expected: int) -> None:
    """The kernel refuses it, and it would bind nobody; the reason says so."""
    found = decided(pod(container("a", 500)), root_quota_us=root)["", QUOTA]
    assert found.value == expected
    assert (found.decision.reason is Reason.CEILING_IS_TIGHTER) is (expected == -1)


IN_USE = {
    "less than the limit": (64 * MI, 64 * MI, Reason.BATCH_RESOURCES),
    # 65 MiB and a sixteenth, rounded up to 4 MiB
    "more than the limit": (65 * MI, 72 * MI, Reason.IN_USE_ALREADY),
    "far more": (640 * MI, 680 * MI, Reason.IN_USE_ALREADY),
}


@pytest.mark.parametrize(("used", "expected", "reason"), IN_USE.values(), ids=IN_USE.keys())
def test_memory_in_use(used: int, expected: int, reason: Reason) -> None:
    """Nobody is killed for a limit that comes late."""
    found = decided(pod(container("a", None, 64 * MI)), in_use={f"{PATH}/a": used})
    assert (found["/a", MEMORY].value, found["/a", MEMORY].decision.reason) == (expected, reason)
    assert found["", MEMORY].value == 64 * MI


def test_a_limit_explains_itself() -> None:
    """Whose limits, what was changed, and which container it is."""
    found = decided(pod(container("a", 500), container("b", 1000)), ratio=2.0)
    terms = [(term.name, term.value, term.note) for term in found["", QUOTA].decision.terms]
    assert terms == [("limits", 150_000, "a 500m, b 1"), ("normalization", -75_000, "ratio 2, rounded up")]
    assert found["", QUOTA].decision.detail == "pod ns/x"
    assert found["/b", QUOTA].decision.detail == "pod ns/x, container b"
    none = decided(pod(container("a", 500, limits=False)))["", QUOTA].decision
    assert [term.note for term in none.terms] == [f"a has no limit of {BATCH_CPU}"]


def test_order_is_of_the_pods() -> None:
    """The same answer for the same pods."""
    first, second = pod(container("a", 1)), msgspec.structs.replace(pod(container("a", 1)), uid="uid-y", name="y")
    where = Places({"uid-y": PodPlace("/kubepods/besteffort/pody"), "uid-x": PodPlace(PATH)})
    assert [knob.cgroup for knob in pod_knobs(V1, where, (first, second))] == [PATH] * 2 + [
        "/kubepods/besteffort/pody"
    ] * 2


MID = ResourceVector({MID_CPU: 500, MID_MEMORY: 64 * MI})


@pytest.mark.parametrize("label", [QoSClass.BE, QoSClass.LS, QoSClass.NONE])
def test_a_mid_pod_is_held_to_what_it_asked_for(label: QoSClass) -> None:
    """Whatever class it says: it lives below the best-effort root, where nobody else limits it. mid-cpu is not
    normalized, so its quota is not either."""
    of = pod(Container("main", MID, MID), qos_label=label, band=PriorityBand.MID)
    for ratio in (None, 2.0):
        found = values(of, ratio=ratio)
        assert found == {
            (cgroup, file): value
            for cgroup in ("", "/main")
            for file, value in ((SHARES, 512), (QUOTA, 50_000), (MEMORY, 64 * MI))
        }


def test_a_mid_pod_without_limits_is_told_so() -> None:
    """By the name of what it asked for."""
    of = pod(Container("main", MID), qos_label=QoSClass.LS, band=PriorityBand.MID)
    limit = decided(of)["", MEMORY]
    assert limit.value == -1 and MID_MEMORY in limit.decision.terms[0].note


def test_a_pod_that_is_neither_batch_nor_mid_is_left_alone() -> None:
    """Below the best-effort root as well."""
    assert not values(pod(Container("main", MID, MID), qos_label=QoSClass.LS, band=PriorityBand.PROD))

"""CPUs of LSE and LSR pods: given as a whole or not at all, and never lent because a word about them is lost."""

from __future__ import annotations

from typing import Any

import pytest

from agent.core.limit.own_cpus import OwnCpuMemory, own_cpus, own_cpus_to_read, with_known_cpus
from agent.core.observe.knobs import cpuset_knob
from agent.core.observe.layout import Layout
from agent.core.observe.observation import Absence, Knob, KnobReading, Missing, Places, PodPlace
from model.pod.pod import Pod
from model.pod.status import PodPhase
from model.qos import QoSClass
from model.reason import Reason
from model.topology import PodCpus, Processor, parse_cpus
from tests.pods import make_pod

V1, V2 = Layout("/kubepods"), Layout("/kubepods", version=2)
A, B, BATCH = "/kubepods/poda/main", "/kubepods/podb/main", "/kubepods/besteffort/podx/main"
PLACES = Places(
    {
        "a": PodPlace("/kubepods/poda", {"main": A}),
        "b": PodPlace("/kubepods/podb", {"main": B}),
        "x": PodPlace("/kubepods/besteffort/podx", {"main": BATCH}),
    }
)
MACHINE = tuple(Processor(cpu, cpu, 0, 0) for cpu in range(4))


def pod(uid: str = "a", cpuset: str = "0-1", qos: QoSClass = QoSClass.LSE, **more: Any) -> Pod:
    return make_pod("default", uid, uid, qos_label=qos, cpuset=cpuset, **more)


def knobs(layout: Layout, *paths: str) -> list[Knob]:
    return [cpuset_knob(layout, path) for path in paths]


READ = {
    "LSE and LSR pods": ((pod(), pod("b", qos=QoSClass.LSR)), ["/kubepods", A, B]),
    "nobody has any": ((pod(cpuset=""), pod("b", qos=QoSClass.LS)), []),
    "one that ended": ((pod(phase=PodPhase.SUCCEEDED),), []),
    "below the best-effort root": ((pod("x"),), []),
    "no cgroup yet": ((pod("new"),), []),
}


@pytest.mark.parametrize("layout", [V1, V2])
@pytest.mark.parametrize(("pods", "paths"), READ.values(), ids=READ)
def test_what_is_read(pods: tuple[Pod, ...], paths: list[str], layout: Layout) -> None:
    """Containers of pods with CPUs of their own, and what all pods may use; nothing without such pods."""
    assert list(own_cpus_to_read(layout, PLACES, pods)) == knobs(layout, *paths)


def given(
    build: Any, pods: tuple[Pod, ...], kernel: Any = "0-3", root: str = "0-3", layout: Layout = V1, **kubelets: str
) -> Any:
    """`kubelets` by the pod that the kubelet gave them to, of which the machine has none beside."""
    away = tuple(PodCpus(uid, parse_cpus(cpus)) for uid, cpus in kubelets.items())
    others = tuple(p for p in MACHINE if all(p.cpu not in each.cpus for each in away))
    readings = dict.fromkeys(knobs(layout, A, B), KnobReading(kernel))
    readings[cpuset_knob(layout, "/kubepods")] = KnobReading(root)
    return own_cpus(layout, build.seen(50.0, places=PLACES, knobs=readings), pods, others, away)


@pytest.mark.parametrize(("layout", "root"), [(V1, "0-3"), (V2, "0-3"), (V2, "")])
def test_containers_run_on_them(build: Any, layout: Layout, root: str) -> None:
    """Each has the list of its pod, with the pod in the record; an empty list of v2 bars nobody."""
    found = given(build, (pod(), pod("b", "2", QoSClass.LSR)), root=root, layout=layout)
    assert [(limit.knob, limit.value, limit.decision.value) for limit in found] == [
        (cpuset_knob(layout, A), "0-1", 2),
        (cpuset_knob(layout, B), "2", 1),
    ]
    assert {limit.decision.reason for limit in found} == {Reason.CPUS_GIVEN}
    assert found[0].decision.detail == "pod default/a: CPUs 0-1"


NOT_GIVEN = {
    "offline": ((pod(cpuset="3-4"),), "0-3", "CPU 4 is offline, or not in this machine", "0-3"),
    "outside kubepods": ((pod(cpuset="1-2"),), "0-1", "no pod may run on CPU 2 (cpuset of kubepods)", "0-3"),
    "offline, beside one that has CPUs": (
        (pod(cpuset="3-4", scheduled_seconds=1.0), pod("b", "1-2", QoSClass.LSR, scheduled_seconds=5.0)),
        "0-3",
        "CPU 4 is offline, or not in this machine",
        "0,3",
    ),
    "given twice": (
        (pod(scheduled_seconds=9.0), pod("b", "1-2", scheduled_seconds=5.0)),
        "0-3",
        "CPU 1 is pod default/b's",
        "0",
    ),
    "given twice, as a whole": (
        (pod(cpuset="1-2", scheduled_seconds=9.0), pod("b", "1-2", scheduled_seconds=5.0)),
        "0-3",
        "CPU 1-2 is pod default/b's",
        "0,3",
    ),
}


@pytest.mark.parametrize(("pods", "root", "why", "runs_on"), NOT_GIVEN.values(), ids=NOT_GIVEN)
def test_what_cannot_be_given(build: Any, pods: tuple[Pod, ...], root: str, why: str, runs_on: str) -> None:
    """It runs where it was, or on what is left to it, never where another is alone, and the record says what is in the
    way. Who came first keeps his."""
    found = {limit.knob: limit for limit in given(build, pods, root=root)}
    limit = found.pop(cpuset_knob(V1, A))
    cpus = len(parse_cpus(runs_on))
    assert (limit.value, limit.decision.value, limit.decision.reason) == (runs_on, cpus, Reason.CPUS_NOT_GIVEN)
    assert limit.decision.detail.endswith(f"; {why}; it runs on {runs_on}")
    assert [(other.value, other.decision.reason) for other in found.values()] == [("1-2", Reason.CPUS_GIVEN)] * len(
        found
    )


KUBELETS: dict[str, tuple[tuple[Pod, ...], dict[str, str], str, str]] = {
    "one of them": ((pod(cpuset="0-1"),), {"g": "1"}, "0", "; CPU 1 is pod g's, by the kubelet; it runs on 0"),
    "all of them": ((pod(cpuset="0-1"),), {"g": "0-1"}, "2-3", "; CPU 0-1 is pod g's, by the kubelet; it runs on 2-3"),
    "of an LSR pod": (
        (pod(cpuset="0-1", qos=QoSClass.LSR), pod("b", qos=QoSClass.LS, cpuset="")),
        {"b": "0"},
        "1",
        "; CPU 0 is pod default/b's, by the kubelet; it runs on 1",
    ),
    "others": ((pod(cpuset="0-1"),), {"g": "2-3"}, "0-1", ""),
    "its own, which nobody else has": ((pod(cpuset="0-1"),), {"a": "0,3"}, "0-1", ""),
    "all of them, and it has its own": (
        (pod(cpuset="0-1"),),
        {"g": "0-1", "a": "3"},
        "3",
        "; CPU 0-1 is pod g's, by the kubelet; it runs on 3",
    ),
    "those of a pod that runs where the scheduler put it": (
        (pod(cpuset="0-1", scheduled_seconds=9.0), pod("b", "2", scheduled_seconds=5.0)),
        {"b": "0-1"},
        "0-1",
        "",
    ),
}


@pytest.mark.parametrize("layout", [V1, V2])
@pytest.mark.parametrize(("pods", "away", "expected", "why"), KUBELETS.values(), ids=KUBELETS)
def test_what_the_kubelet_gave_to_another(
    build: Any, pods: tuple[Pod, ...], away: dict[str, str], expected: str, why: str, layout: Layout
) -> None:
    """The Guaranteed pod has it alone: the LSE or LSR pod has what is left of its CPUs, else the others' shared ones."""
    found = {limit.knob: limit for limit in given(build, pods, layout=layout, **away)}
    limit = found[cpuset_knob(layout, A)]
    reason = Reason.CPUS_NOT_GIVEN if why else Reason.CPUS_GIVEN
    assert (limit.value, limit.decision.reason, limit.decision.value) == (expected, reason, len(parse_cpus(expected)))
    assert limit.decision.detail == f"pod default/a: CPUs 0-1{why}"


def test_no_cpu_is_left(build: Any) -> None:
    """An empty list cannot be: it stays as it is."""
    (limit,) = (each for each in given(build, (pod(),), kernel="0-3", g="0-3") if each.knob.cgroup == A)
    assert limit.value == "0-3" and limit.decision.reason is Reason.CPUS_NOT_GIVEN


def test_nothing_is_judged_in_the_dark(build: Any) -> None:
    """A list that cannot be read, or a machine whose CPUs are not known."""
    gone = Missing("cpuset.cpus", Absence.GONE, "gone")
    assert given(build, (pod(),), kernel=gone) == ()
    seen = build.seen(50.0, places=PLACES, knobs=dict.fromkeys(knobs(V1, A), KnobReading("0-3")))
    assert own_cpus(V1, seen, (pod(),), ()) == ()


def test_a_container_that_is_just_made(build: Any) -> None:
    """Its v1 list is empty until its runtime fills it, and once there are processes nobody can make it so again; of v2
    an empty list is every CPU."""
    assert given(build, (pod(),), kernel="") == ()
    assert [limit.value for limit in given(build, (pod(),), kernel="", layout=V2)] == ["0-1"]


KNOWN: dict[str, tuple[Pod, str]] = {
    "what it says now": (pod(cpuset="2"), "2"),
    "what it said before": (pod(cpuset=""), "0-1"),
    "an LS pod has none": (pod(cpuset="", qos=QoSClass.LS), ""),
    "one that ended": (pod(cpuset="", phase=PodPhase.FAILED), ""),
}


@pytest.mark.parametrize(("told", "expected"), KNOWN.values(), ids=KNOWN)
def test_a_lost_word(told: Pod, expected: str) -> None:
    """A running pod keeps the CPUs that it had."""
    memory, _ = with_known_cpus(OwnCpuMemory(), (pod(),))
    after, found = with_known_cpus(memory, (told,))
    assert found is not None
    assert [each.colocation.cpuset for each in found] == [expected]
    assert after.lists == ({"a": expected} if expected else {})


def test_pods_that_are_not_listed_forget_nothing() -> None:
    """One that is gone from the list is forgotten."""
    memory, _ = with_known_cpus(OwnCpuMemory(), (pod(),))
    assert with_known_cpus(memory, None) == (memory, None)
    assert with_known_cpus(memory, ())[0].lists == {}


def test_pods_that_are_known_to_be_the_same_stay_the_same_tuple() -> None:
    """What is remembered of them is told by that."""
    pods = (pod(),)
    memory, found = with_known_cpus(OwnCpuMemory(), pods)
    assert found is pods and with_known_cpus(memory, pods)[1] is pods

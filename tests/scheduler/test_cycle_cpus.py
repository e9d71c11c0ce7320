"""LSE and LSR pods get whole CPUs: none is given twice, whatever the order of events, and each pod says which."""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec
import pytest
from scheduler_builders import raw_group, raw_node, raw_pod
from scheduler_fakes import World

from kube import objects
from kube.dialects.koordinator.cpubinding import ANNOTATION_RESOURCE_SPEC, LABEL_BIND_POLICY, NOT_WHOLE
from kube.dialects.koordinator.labels import ANNOTATION_RESOURCE_STATUS, LABEL_QOS
from kube.dialects.koordinator.topology import ANNOTATION_CPU_TOPOLOGY, ANNOTATION_RESERVATION
from model.fault import KubernetesFault
from model.reason import Reason
from scheduler.core.scores.policy import PLAIN_SCORE, PROFILES, SchedulerProfile
from scheduler.settings import SchedulerSettings

PROD = 9500


def node(name: str = "n1", cpu: str = "64", labels: Mapping[str, str] | None = None) -> objects.Node:
    made = raw_node(name)
    amounts: dict[str, str | int | float] = {"pods": "110", "cpu": cpu}
    metadata = msgspec.structs.replace(made.metadata, labels=dict(labels or {}))
    return msgspec.structs.replace(made, metadata=metadata, status=objects.NodeStatus(amounts, amounts))


def topology(name: str = "n1", cores: int = 2, **annotations: str) -> objects.NodeResourceTopology:
    """Two threads a core, all in one NUMA node: cores {0,1} {2,3} …"""
    detail = [{"id": cpu, "core": cpu // 2, "socket": 0, "node": 0} for cpu in range(2 * cores)]
    told = {ANNOTATION_CPU_TOPOLOGY: json.dumps({"detail": detail}), **annotations}
    return objects.NodeResourceTopology(objects.Metadata(name=name, annotations=told))


def pod(
    name: str = "p1", cpu: str = "2", qos: str = "LSE", spec: str = "", status: str = "", **more: object
) -> objects.Pod:
    labels = {LABEL_QOS: qos, **more.pop("labels", {})}  # type: ignore[dict-item]
    told = {ANNOTATION_RESOURCE_SPEC: spec, ANNOTATION_RESOURCE_STATUS: status}
    annotations = {key: text for key, text in told.items() if text}
    made = raw_pod(name, labels=labels, annotations=annotations, priority=PROD, **more)  # type: ignore[arg-type]
    resources = objects.Resources({"cpu": cpu}, {"cpu": cpu})
    spec_ = msgspec.structs.replace(made.spec, containers=[objects.Container("main", resources)])
    return msgspec.structs.replace(made, spec=spec_)


def given(world: World) -> dict[str, str]:
    """By pod, the cpuset it was bound with."""
    return {name: json.loads(told[ANNOTATION_RESOURCE_STATUS])["cpuset"] for name, told in world.binder.told.items()}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (pod(), {"p1": "0-1"}),
        (pod(qos="LSR", cpu="3"), {"p1": "0-2"}),
        (pod(spec='{"preferredCPUBindPolicy": "SpreadByPCPUs"}'), {"p1": "0,2"}),
        (pod(qos="LS"), {}),
        (pod(spec='{"preferredCPUBindPolicy": "ConstrainedBurst"}'), {}),
    ],
)
def test_a_pod_gets_its_cpus(asked: objects.Pod, expected: dict[str, str]) -> None:
    """With its Binding; one that asks for none is bound without a word."""
    world = World().see(node(), topology(), asked)
    world.turn()
    assert world.binder.assigned == {"p1": "n1"}
    assert given(world) == expected


def test_the_status_as_it_is_written() -> None:
    """The list, and how many CPUs of each NUMA node."""
    world = World().see(node(), topology(), pod())
    world.turn()
    assert json.loads(world.binder.told["p1"][ANNOTATION_RESOURCE_STATUS]) == {
        "cpuset": "0-1",
        "numaNodeResources": [{"node": 0, "resources": {"cpu": "2"}}],
    }


def test_no_cpu_is_given_twice_before_the_informer_tells() -> None:
    """What is assumed counts, in the turn and in the next; who finds none waits, and says why."""
    world = World().see(node(), topology(), pod("a"), pod("b"), pod("c"))
    world.turn()
    assert given(world) == {"a": "0-1", "b": "2-3"}
    world.see(pod("d")).turn(after=1.0)
    message = "0/1 nodes are available: 1 not enough cpus available to satisfy request."
    assert world.writer.conditions == {"c": message, "d": message}
    assert [d.reason for d in world.turn().decisions] == []


def test_a_pod_that_ends_gives_its_cpus_back() -> None:
    """Who waits for CPUs is woken by that, whatever room there is besides."""
    holder = pod("a", cpu="4", node_name="n1", status='{"cpuset": "0-3"}')
    world = World().see(node(), topology(), holder, pod("b", cpu="4"))
    (decision,) = world.turn().decisions
    assert decision.reason is Reason.CPUS_NOT_BOUND
    world.gone(holder).turn(after=1.0)
    assert given(world) == {"b": "0-3"}


def test_a_restart_reads_what_was_given() -> None:
    """From the pods, whoever bound them; one that ended has none any more."""
    bound = pod("a", node_name="n1", status='{"cpuset": "0-1"}')
    ended = pod("e", node_name="n1", status='{"cpuset": "2-3"}', phase="Succeeded")
    world = World().see(node(), topology(cores=3), bound, ended, pod("b"), pod("c"))
    world.turn()
    assert given(world) == {"b": "2-3", "c": "4-5"}


def test_a_binding_that_fails_gives_them_back() -> None:
    """The next attempt finds the same CPUs free."""
    world = World().see(node(), topology(cores=1), pod())
    world.binder.failures["p1"] = KubernetesFault("p1", "403", status=403)
    world.turn()
    assert world.binder.assigned == {}
    for _ in range(3):
        world.turn(after=30.0)
    assert given(world) == {"p1": "0-1"}


def test_members_of_a_gang_on_one_node() -> None:
    """Each has its own; a gang of which one member finds none is not bound at all."""
    members = [pod(f"w{i}", group="train", created=float(i)) for i in range(3)]
    world = World().see(node(), topology(cores=3), raw_group(), *members)
    world.turn()
    assert given(world) == {"w0": "0-1", "w1": "2-3", "w2": "4-5"}
    short = World().see(node(), topology(cores=2), raw_group(), *members)
    short.turn()
    assert short.binder.assigned == {}
    assert "2 of 3 members fit" in short.writer.conditions["w0"]


STAND_IN = SchedulerSettings(profiles=(*PROFILES, SchedulerProfile(("default-scheduler",), PLAIN_SCORE, plain=True)))
WHY = {
    "no topology": ([node()], pod(), "node(s) invalid CPU Topology"),
    "the last CPUs are reserved": (
        [node(), topology(cores=1, **{ANNOTATION_RESERVATION: '{"reservedCPUs": "0"}'})],
        pod(),
        "not enough cpus available to satisfy request",
    ),
    "required, and the node wants another policy": (
        [node(labels={LABEL_BIND_POLICY: "SpreadByPCPUs"}), topology()],
        pod(spec='{"requiredCPUBindPolicy": "FullPCPUs"}'),
        "node(s) cpu bind policy conflicts with pod's required cpu bind policy",
    ),
    "half a core of whole ones": (
        [node(), topology()],
        pod(cpu="1", spec='{"requiredCPUBindPolicy": "FullPCPUs"}'),
        "node(s) requested cpus not multiple cpus per core",
    ),
    "half a CPU": ([node(), topology()], pod(cpu="1500m"), NOT_WHOLE),
    "a spec that cannot be read": ([node(), topology()], pod(spec="{"), ANNOTATION_RESOURCE_SPEC),
}


@pytest.mark.parametrize(("facts", "asked", "words"), WHY.values(), ids=WHY)
def test_why_not(facts: list[objects.Node], asked: objects.Pod, words: str) -> None:
    """Koordinator's words by node, one reason for alerts."""
    world = World().see(*facts, asked)
    (decision,) = world.turn().decisions
    assert world.binder.assigned == {}
    assert decision.reason is Reason.CPUS_NOT_BOUND
    assert words in world.writer.conditions["p1"]


def test_a_topology_that_comes_later() -> None:
    """Its news wakes who waits for it; the same once more wakes nobody."""
    world = World().see(node(), pod())
    world.turn()
    world.see(topology()).turn(after=1.0)
    assert given(world) == {"p1": "0-1"}


def test_pods_placed_plainly_get_none() -> None:
    """Those of a scheduler name that is served as kube-scheduler serves it."""
    world = World(STAND_IN)
    world.see(node(), topology(), pod(scheduler_name="default-scheduler")).turn()
    assert (world.binder.assigned, given(world)) == ({"p1": "n1"}, {})


def test_eviction_gives_cpus_to_higher_priority() -> None:
    """A victim's CPUs are free in thought before anybody goes; who keeps none that help is not evicted."""
    holder = pod("a", cpu="4", node_name="n1", status='{"cpuset": "0-3"}')
    low = msgspec.structs.replace(holder, spec=msgspec.structs.replace(holder.spec, priority=9000))
    useless = pod("u", qos="LS", cpu="1", node_name="n1")
    useless = msgspec.structs.replace(useless, spec=msgspec.structs.replace(useless.spec, priority=9000))
    world = World().see(node(), topology(), low, useless, pod("b", cpu="4"))
    world.turn()
    world.turn(after=1.0)
    assert list(world.evictor.evicted) == ["a"]

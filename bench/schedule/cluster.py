"""Clusters and workloads for the scheduler's benchmark: synthetic ones from a seed, real ones from published traces."""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from model.node import Node
from model.pod.pod import Pod
from model.pod.spec import PodSpec
from model.pod.status import PodStatus
from model.resources import CPU, MEMORY, PODS, ResourceVector
from model.workload import Gang, GangMembership, GangSource, GangSpec, WorkloadId
from scheduler.core.gangs.assembly import Candidate, assemble, roster
from scheduler.core.snapshot.podclass import KnownClasses

SCHEDULER = "koord-scheduler"
GPU = "nvidia.com/gpu"
_GIB, _MIB = 1 << 30, 1 << 20
_CLASSES = KnownClasses()
_SHAPES = ((500, 1), (1000, 2), (1000, 4), (2000, 4), (2000, 8), (3000, 8), (4000, 8), (4000, 16))
"""Milli-CPU and GiB of the synthetic members."""


class TracePod(msgspec.Struct, frozen=True):
    """A pod of the openb trace that asks for whole GPUs, or for none."""

    cpu_millis: int
    memory_mib: int
    gpus: int


def synthetic_nodes(count: int) -> list[Node]:
    """Machines of 64 CPUs and 256 GiB in 8 zones; every tenth has a taint that nobody tolerates."""
    from model.node import Taint

    amounts = ResourceVector({CPU: 64_000, MEMORY: 256 * _GIB, PODS: 110})
    tainted = (Taint("dedicated", "other"),)
    return [
        Node(
            name=f"node-{number:05d}",
            capacity=amounts,
            allocatable=amounts,
            labels={"kubernetes.io/hostname": f"node-{number:05d}", "topology.kubernetes.io/zone": f"z{number % 8}"},
            taints=tainted if number % 10 == 9 else (),
        )
        for number in range(count)
    ]


def residents(nodes: Sequence[Node], seed: int, share: float) -> Iterator[Pod]:
    """Running pods that take up to about this share of each node."""
    chance = random.Random(seed)
    for number, node in enumerate(nodes):
        used, mine = 0, 0
        wanted = chance.random() * 2 * share * 64_000
        while used < wanted and mine < 60:
            cpu, memory = chance.choice(_SHAPES)
            yield pod(f"old-{number}-{mine}", {CPU: cpu, MEMORY: memory * _GIB}, node=node.name)
            used, mine = used + cpu, mine + 1


def synthetic_gangs(count: int, members: int, seed: int) -> list[Candidate]:
    """Gangs of like members, each of one of eight shapes; gangs of 1 are lone pods."""
    return [workload(name, members, requests) for name, requests in synthetic_requests(count, seed)]


def synthetic_requests(count: int, seed: int) -> Iterator[tuple[str, dict[str, int]]]:
    """What a member of each of so many workloads asks for, by the workload's name."""
    chance = random.Random(seed)
    for number in range(count):
        cpu, memory = chance.choice(_SHAPES)
        yield f"job-{number}", {CPU: cpu, MEMORY: memory * _GIB}


def workload(name: str, members: int, requests: dict[str, int], priority: int = 0) -> Candidate:
    """A gang that needs all its members, or a lone pod."""
    pods = members_of(name, members, requests, priority)
    return candidate(pods, Gang("default", name, GangSpec(members), uid=name) if members > 1 else None)


def members_of(name: str, members: int, requests: dict[str, int], priority: int = 0) -> list[Pod]:
    """Its pods."""
    if members == 1:
        return [pod(name, requests, priority=priority)]
    own = GangMembership("default", name, GangSource.POD_GROUP)
    return [pod(f"{name}-{index}", requests, gang=own, priority=priority) for index in range(members)]


def candidate(pods: Sequence[Pod], gang: Gang | None = None) -> Candidate:
    """As the backlog would hold it."""
    subject = WorkloadId.gang(gang.key) if gang else WorkloadId.pod(pods[0].key)
    found = assemble(subject, roster(pods, (), (SCHEDULER,)), gang, _CLASSES.of).candidate
    assert found is not None
    return found


def pod(
    name: str,
    requests: dict[str, int],
    *,
    node: str = "",
    gang: GangMembership | None = None,
    priority: int = 0,
    started_seconds: float = 0.0,
) -> Pod:
    spec = PodSpec(
        requests=ResourceVector(requests),
        scored=ResourceVector({key: requests[key] for key in (CPU, MEMORY) if key in requests}),
        node_name=node,
        scheduler_name=SCHEDULER,
        gang=gang,
        priority=priority,
    )
    return Pod("default", name, name, spec, PodStatus(started_seconds=started_seconds), owned=True)


def openb_nodes(data: Path, *, gpu_only: bool = False) -> list[Node]:
    """The nodes in the file's order; with `gpu_only` those 1,213 that the paper uses."""
    rows = _rows(data / "openb" / "nodes.csv.gz")
    return [_openb_node(row) for row in rows if int(row["gpu"]) > 0 or not gpu_only]


def _openb_node(row: dict[str, str]) -> Node:
    amounts = ResourceVector(
        {
            CPU: int(row["cpu_milli"]),
            MEMORY: int(row["memory_mib"]) * _MIB,
            PODS: 1000,
            **({GPU: int(row["gpu"])} if int(row["gpu"]) else {}),
        }
    )
    labels = {"gpu-model": row["gpu_model"]} if row["gpu_model"] else {}
    return Node(name=row["node"], capacity=amounts, allocatable=amounts, labels=labels)


def openb_pods(data: Path) -> list[TracePod]:
    """In the file's order, without the 3,078 pods that share a GPU: Kubernetes counts whole ones."""
    found = []
    for row in _rows(data / "openb" / "pods.csv.gz"):
        gpus = int(row["num_gpu"])
        if gpus != 1 or int(row["gpu_milli"]) == 1000:
            found.append(TracePod(int(row["cpu_milli"]), int(row["memory_mib"]), gpus))
    return found


def openb_candidates(pods: Iterable[TracePod]) -> list[Candidate]:
    """Lone pods, in order; those alike share one class."""
    return [workload(f"openb-{number}", 1, amounts(each)) for number, each in enumerate(pods)]


def amounts(each: TracePod) -> dict[str, int]:
    request = {CPU: each.cpu_millis, MEMORY: each.memory_mib * _MIB}
    return request | ({GPU: each.gpus} if each.gpus else {})


def philly_gangs(data: Path, count: int) -> list[Candidate]:
    """Jobs in order of submission: up to 8 GPUs are one pod, above that there is a pod for each 8; a CPU a GPU."""
    found = []
    for number, row in enumerate(_rows(data / "gangs" / "philly_jobs.csv.gz")):
        if number == count:
            break
        gpus = int(row["gpus"])
        members, each = (1, gpus) if gpus <= 8 else (-(-gpus // 8), 8)
        found.append(workload(f"philly-{number}", members, {CPU: each * 1000, MEMORY: each * _GIB, GPU: each}))
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as stream:
        yield from csv.DictReader(stream)

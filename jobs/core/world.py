"""World of an elastic job: the pods that train together at this moment, and the file by which their processes know.

The file is a ConfigMap that every pod mounts: it follows the job while processes run, which their variables cannot.
"""

from __future__ import annotations

import hashlib

import msgspec

from jobs.core.members import Roster
from jobs.core.owner import metadata
from jobs.core.peers import ElasticPeers, Peers, pod_name
from model.job.actions import EnsureObject, MadeKind
from model.job.job import Job, Member
from model.job.status import JobStatus, PodPhase, World

VOLUME, FOLDER, FILE = "sublet-world", "/etc/sublet/world", "world.json"
_TRAINS = (PodPhase.RUNNING, PodPhase.SUCCEEDED)
_DIGEST = 12


class _World(msgspec.Struct, frozen=True):
    """`members` are names of pods in the order of their ranks; minimum and maximum count pods of the whole job."""

    generation: int
    size: int
    minimum: int
    maximum: int
    members: tuple[str, ...]


def members_of(elastic: ElasticPeers, found: Roster) -> tuple[Member, ...]:
    """Those whose pods run, or ran to their end, and that nobody takes; all that are wanted until the minimum does."""
    pods = found.current
    trains = tuple(
        each
        for each in found.wanted
        if each in pods and pods[each].phase in _TRAINS and not pods[each].evicted and not pods[each].leaving
    )
    return trains if len(trains) >= elastic.minimum else found.wanted


def followed(status: JobStatus, peers: Peers, found: Roster) -> JobStatus:
    """The same with its world as it is: each change of who is in it, or of a pod in its place, is a generation."""
    if peers.elastic is None or not status.phase.active:
        return status
    members = members_of(peers.elastic, found)
    runs = (found.current[each].run if each in found.current else status.run for each in members)
    text = ",".join(f"{each.text}/{run}" for each, run in zip(members, runs, strict=True))
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    if digest == status.world.digest:
        return status
    world = World(status.world.generation + 1, len(members), digest)
    return msgspec.structs.replace(status, world=world)


def config_map(job: Job, elastic: ElasticPeers, status: JobStatus, found: Roster) -> EnsureObject:
    """The file, and what of it follows."""
    members = tuple(pod_name(job.id.name, each) for each in members_of(elastic, found))
    world = _World(status.world.generation, len(members), elastic.minimum, elastic.maximum, members)
    data = {"data": {FILE: msgspec.json.encode(world).decode()}}
    name = config_map_name(job.id.name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(job, name), **data}
    return EnsureObject(MadeKind.CONFIG_MAP, name, body, data)


def config_map_name(job: str) -> str:
    """`JOB-world`."""
    return f"{job}-world"


def environment(pod: str) -> dict[str, str]:
    """Where the file is, and under which name the pod is in it."""
    return {"SUBLET_WORLD_FILE": f"{FOLDER}/{FILE}", "SUBLET_WORLD_MEMBER": pod}

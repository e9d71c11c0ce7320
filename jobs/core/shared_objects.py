"""Objects that all pods of a job share, beside the PodGroup: Service, hosts, keys; and how containers get at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from jobs.core import world
from jobs.core.frameworks import mpi
from jobs.core.owner import metadata
from jobs.core.peers import Peers
from jobs.core.plugins import ssh, svc
from jobs.core.plugins.arguments import flags
from model.job import labels
from model.job.actions import EnsureObject, MadeKind
from model.job.job import Framework, Job


class Extra(msgspec.Struct, frozen=True):
    """What every container of the job gets: entries of `env`, of `volumeMounts`, and the volumes of its pod."""

    variables: tuple[dict[str, Any], ...] = ()
    mounts: tuple[dict[str, Any], ...] = ()
    volumes: tuple[dict[str, Any], ...] = ()


def shared_objects(job: Job, peers: Peers, selector: dict[str, str]) -> Iterator[EnsureObject]:
    """In the order in which they are made; all exist before the first pod does."""
    if job.framework is not None or "svc" in job.plugins:
        yield _service(job, selector)
    for name, data in _config_maps(job, peers):
        yield EnsureObject(
            MadeKind.CONFIG_MAP, name, _body(job, "v1", "ConfigMap", name, {"data": data}), {"data": data}
        )
    if "svc" in job.plugins and flags(job.plugins["svc"]).get("disable-network-policy") != "true":
        spec = {"spec": svc.network_policy(selector)}
        body = _body(job, "networking.k8s.io/v1", "NetworkPolicy", job.id.name, spec)
        yield EnsureObject(MadeKind.NETWORK_POLICY, job.id.name, body)
    if keys := _keys(job):
        name = ssh.secret_name(job.id.name)
        told = {"type": "Opaque", "stringData": {ssh.CONFIG: ssh.config(peers, keys)}}
        yield EnsureObject(MadeKind.SECRET, name, _body(job, "v1", "Secret", name, told))


def extra(job: Job, peers: Peers) -> Extra:
    """The way of containers to these objects."""
    name = job.id.name
    variables: list[dict[str, Any]] = []
    if "svc" in job.plugins and flags(job.plugins["svc"]).get("inject-hosts-env") != "false":
        tasks = tuple(task.name for task in job.tasks)
        variables = svc.references(name, svc.hosts(peers, tasks))
    folders = [(config, _FOLDERS[config.rpartition("-")[2]]) for config, _ in _config_maps(job, peers)]
    mounts: list[dict[str, Any]] = [{"name": config, "mountPath": folder} for config, folder in folders]
    volumes = [{"name": config, "configMap": {"name": config}} for config, _ in folders]
    if job.elastic is not None:
        mounts.append({"name": world.VOLUME, "mountPath": world.FOLDER})
        volumes.append({"name": world.VOLUME, "configMap": {"name": world.config_map_name(name)}})
    if job.checkpoint is not None:
        mounts.append({"name": _NOTICE_VOLUME, "mountPath": _NOTICE_FOLDER, "readOnly": True})
        volumes.append(_notice_volume())
    keys = _keys(job)
    if keys:
        mounts.append(ssh.mount(name, keys))
        volumes.append(ssh.volume(name))
    return Extra(tuple(variables), tuple(mounts), tuple(volumes))


_NOTICE_VOLUME, _NOTICE_FOLDER = "sublet-notice", "/etc/sublet/notice"
NOTICE_FILE = f"{_NOTICE_FOLDER}/preemption"
"""Empty while the pod is told nothing."""


def _notice_volume() -> dict[str, Any]:
    """The notice that stands on the pod, as a file that follows it."""
    field = {"fieldPath": f"metadata.annotations['{labels.STANDING_NOTICE}']"}
    items = [{"path": NOTICE_FILE.rpartition("/")[2], "fieldRef": field}]
    return {"name": _NOTICE_VOLUME, "downwardAPI": {"items": items}}


_FOLDERS = {"svc": svc.FOLDER, "mpi": mpi.FOLDER}


def _config_maps(job: Job, peers: Peers) -> Iterator[tuple[str, dict[str, str]]]:
    if "svc" in job.plugins:
        yield svc.config_map_name(job.id.name), svc.hosts(peers, tuple(task.name for task in job.tasks))
    if job.framework is Framework.MPI:
        yield f"{job.id.name}-mpi", {mpi.FILE: mpi.host_file(peers)}


def _keys(job: Job) -> dict[str, str]:
    """The flags of the plugin ssh, where pods reach each other by it; MPI's launchers do."""
    if "ssh" in job.plugins:
        return {"ssh": "true", **flags(job.plugins["ssh"])}
    return {"ssh": "true"} if job.framework is Framework.MPI else {}


def _service(job: Job, selector: dict[str, str]) -> EnsureObject:
    """Names are published before pods are ready: processes look for each other while they start."""
    spec = {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True}
    return EnsureObject(MadeKind.SERVICE, job.id.name, _body(job, "v1", "Service", job.id.name, {"spec": spec}))


def _body(job: Job, version: str, kind: str, name: str, more: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": metadata(job, name), **more}

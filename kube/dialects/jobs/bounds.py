"""How large a job may be: whoever may write one makes the scheduler read it at each look, and make all its pods.

An object of a few hundred bytes may ask for ten thousand pods, each of which names all others; one of a megabyte may
lay every volume into every container. Each bound is refused in one sentence, by the webhook and by the controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from typing import Any

import msgspec

from kube.dialects.documents.document import too_deep
from model.fault import ConfigurationFault
from model.job.job import Framework, Job, JobTask

MOST_SPEC_BYTES = 512 << 10
"""Of one job; it takes up to 24 times that in memory while it is looked at."""
MOST_PODS = 10_000
"""Of one job: no gang of more is placed, and each has an entry in every peer's list of hosts."""
MOST_POD_BYTES = 128 << 20
"""Of all pods of one job together: 10,000 pods of 13 kB."""
MOST_TASKS, MOST_CONTAINERS, MOST_VOLUMES, MOST_RULES, MOST_TERMS, MOST_ARGUMENTS = 256, 64, 64, 64, 256, 64
_NAME_ALL = (Framework.TENSORFLOW, Framework.PADDLE, Framework.XGBOOST)
"""Frameworks whose pods name all pods of the job in a variable of each container."""
_MOST_VARIABLE_BYTES = 128 << 10
"""Of one variable: Linux starts no process with a longer one (MAX_ARG_STRLEN)."""
_PORT_CHARACTERS = len(":65535") + len('"",')
_VARIABLE_BYTES = 160
"""Of one variable that refers to a ConfigMap, with its name and key."""
_LABELS_OF_GPUS = 4
"""Terms that are made of each node selector term of a job with a kind of GPUs."""


def decoded(raw: msgspec.Raw, where: str) -> Any:
    """The spec of a job; None where there is none. Raises ConfigurationFault."""
    size = len(raw)
    if size > MOST_SPEC_BYTES:
        fix = f"write at most {MOST_SPEC_BYTES}; what pods read belongs into a ConfigMap or a volume"
        raise ConfigurationFault(where, f"has {size} bytes", fix)
    try:
        return msgspec.json.decode(raw) if size else None
    except RecursionError as error:
        raise too_deep(where) from error


def check_count(found: Sized | None, most: int, what: str, where: str) -> None:
    """Raises ConfigurationFault where there are more than that."""
    if found is not None and len(found) > most:
        raise ConfigurationFault(where, f"has {len(found)} {what}", f"write at most {most}")


def check_template(template: Mapping[str, Any], where: str) -> None:
    """Raises ConfigurationFault for a template, already known to be one, with too many parts of a kind."""
    spec = template["spec"]
    containers = [*spec["containers"], *(spec.get("initContainers") or ())]
    check_count(containers, MOST_CONTAINERS, "containers", f"{where}.spec")
    check_count(_terms(template), MOST_TERMS, "node selector terms", f"{where}.spec.affinity")


def check_size(job: Job) -> None:
    """Raises ConfigurationFault for a job whose pods are larger together than a cluster takes."""
    every = sum(task.replicas for task in job.tasks)
    peers = _peers_bytes(job, every)
    if peers > _MOST_VARIABLE_BYTES:
        told = f"has {every} pods, and {job.framework} names all in one variable of each: {peers} bytes"
        raise ConfigurationFault(job.id.text, told, f"have fewer pods: {_MOST_VARIABLE_BYTES} bytes is Linux's bound")
    total = sum(task.replicas * _pod_bytes(job, task, peers) for task in job.tasks)
    if total > MOST_POD_BYTES:
        told = f"has {every} pods of {total} bytes together"
        raise ConfigurationFault(job.id.text, told, f"write at most {MOST_POD_BYTES}: smaller templates, or fewer pods")


def _peers_bytes(job: Job, pods: int) -> int:
    """Of the variable that names all."""
    if job.framework not in _NAME_ALL:
        return 0
    digits = len(str(pods))
    return sum(
        task.replicas * (2 * len(job.id.name) + len(task.name) + len("-..") + digits + _PORT_CHARACTERS)
        for task in job.tasks
    )


def _pod_bytes(job: Job, task: JobTask, peers: int) -> int:
    spec = task.template["spec"]
    containers = len(spec["containers"]) + len(spec.get("initContainers") or ())
    added = peers + _told_bytes(job) + (2 * len(job.tasks) * _VARIABLE_BYTES if "svc" in job.plugins else 0)
    terms = msgspec.json.encode(_terms(task.template)) if job.group.gpu_type else b""
    kinds = max(1, len(_terms(task.template))) * _LABELS_OF_GPUS * len(job.group.gpu_type)
    more = (_LABELS_OF_GPUS - 1) * len(terms) + kinds
    return len(msgspec.json.encode([job.inherited, task.template])) + more + containers * added


def _told_bytes(job: Job) -> int:
    """Of variables whose values the job's author wrote once for all containers."""
    url = job.checkpoint.url if job.checkpoint else ""
    return len(url) + sum(len(argument) for told in job.plugins.values() for argument in told)


def _terms(template: Mapping[str, Any]) -> list[Any]:
    affinity = template["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms: list[Any] = required.get("nodeSelectorTerms") or []
    return terms


def check_each(found: Iterable[tuple[Sized | None, int, str]], where: str) -> None:
    """Raises ConfigurationFault for the first of which there are too many: (parts, bound, name)."""
    for parts, most, what in found:
        check_count(parts, most, what, where)

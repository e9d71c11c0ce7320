"""The TrainingJob that is submitted: of a file as it stands there, or made of a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from model.fault import ConfigurationFault
from model.job.job import Framework

API_VERSION, KIND = "sublet.dev/v1alpha1", "TrainingJob"
_CONTAINER = "main"
_LONGEST_STEM = 40
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_UNNAMED = "job"


class CommandJob(msgspec.Struct, frozen=True):
    """A command that each of `replicas` pods runs, with what each of them asks for, as Kubernetes writes quantities."""

    command: tuple[str, ...]
    name: str = ""
    image: str = ""
    framework: Framework = Framework.PYTORCH
    replicas: int = 1
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    queue: str = ""
    priority_class: str = ""
    max_retry: int | None = None
    environment: Mapping[str, str] = {}


def of_command(job: CommandJob) -> dict[str, Any]:
    """Where it has no name the server makes one up that begins with that of the program."""
    metadata = {"name": job.name} if job.name else {"generateName": f"{_stem(job.command[0])}-"}
    container: dict[str, Any] = {"name": _CONTAINER, "image": job.image, "command": list(job.command)}
    if job.environment:
        container["env"] = [{"name": name, "value": text} for name, text in job.environment.items()]
    resources: dict[str, Any] = {"gpu": job.gpus} if job.gpus else {}
    resources |= {name: amount for name, amount in (("cpu", job.cpu), ("memory", job.memory)) if amount}
    terms = {"queue": job.queue, "priorityClassName": job.priority_class}
    scheduling = {name: text for name, text in terms.items() if text}
    spec = {
        "jobType": job.framework.value,
        "resources": {"minReplicas": job.replicas, "replicaResources": resources},
        **({"schedulingConfig": scheduling} if scheduling else {}),
        **({"maxRetry": job.max_retry} if job.max_retry is not None else {}),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}


def of_documents(documents: Iterable[object], where: str) -> dict[str, Any]:
    """The one TrainingJob of a file. Raises ConfigurationFault for any other content."""
    found = [document for document in documents if document is not None]
    document: Any = found[0] if len(found) == 1 else None
    if not isinstance(document, dict):
        raise ConfigurationFault(where, f"holds {len(found)} documents", f"give a file with one {KIND}")
    told = document.get("apiVersion"), document.get("kind")
    if told != (API_VERSION, KIND):
        words = " ".join(str(each) for each in told if each) or "an object without kind"
        raise ConfigurationFault(where, f"is {words}", f"give a {KIND} of {API_VERSION}; kubectl creates others")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise ConfigurationFault(where, "has no metadata.name", "name it")
    return document


def environment(given: Sequence[str]) -> dict[str, str]:
    """Of `NAME=VALUE`. Raises ConfigurationFault."""
    pairs = [each.partition("=") for each in given]
    for (name, equals, _), each in zip(pairs, given, strict=True):
        if not name or not equals:
            raise ConfigurationFault(f"--env {each}", "is not NAME=VALUE", "write for example --env SEED=1")
    return {name: text for name, _, text in pairs}


def _stem(program: str) -> str:
    """What an object may be called by, of the program's file name without its ending."""
    words = _NOT_IN_NAMES.sub("-", PurePath(program).stem.lower()).strip("-")
    return words[:_LONGEST_STEM].strip("-") or _UNNAMED

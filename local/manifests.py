"""Documents of `deploy/` onto an API server that `sublet up` did not start, as `kubectl apply --server-side` does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from kube.client import KubeClient, PatchKind, path_of
from model.condition import ConditionStatus

Document = Mapping[str, Any]
_MANAGER = "sublet-up"
_ESTABLISHED_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"


def documents(files: Iterable[Path]) -> list[Document]:
    """All of the files, in their order."""
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each is not None]


async def apply(client: KubeClient, wanted: Iterable[Document]) -> None:
    """Definitions that are there already stay as they are; everything else is made what it says.

    Raises KubernetesFault for the first that is refused.
    """
    plurals: dict[str, dict[str, str]] = {}
    for document in wanted:
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        if kind == "CustomResourceDefinition":
            await _define(client, document)
            continue
        if version not in plurals:
            plurals[version] = await _plurals(client, version)
        resource = f"{version}/{plurals[version][kind]}"
        path = path_of(resource, namespace=metadata.get("namespace"), name=metadata["name"])
        query = {"fieldManager": _MANAGER, "force": "true"}
        await client.patch(path, document, PatchKind.APPLY, query)


async def make_missing(client: KubeClient, wanted: Iterable[Document]) -> None:
    """What is there already stays as it is. Raises KubernetesFault for the first that is refused."""
    plurals: dict[str, dict[str, str]] = {}
    for document in wanted:
        version, kind, metadata = document["apiVersion"], document["kind"], document["metadata"]
        if version not in plurals:
            plurals[version] = await _plurals(client, version)
        path = path_of(f"{version}/{plurals[version][kind]}", namespace=metadata.get("namespace"))
        await client.create_missing(path, document)


async def _plurals(client: KubeClient, version: str) -> dict[str, str]:
    listed = await client.get(path_of(f"{version}/").rstrip("/"), dict)
    return {each["kind"]: each["name"] for each in listed["resources"] if "/" not in each["name"]}


async def _define(client: KubeClient, definition: Document) -> None:
    await client.create_missing(path_of(_DEFINITIONS), definition)
    path = path_of(_DEFINITIONS, name=definition["metadata"]["name"])
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while not _established(await client.get(path, dict)):
            await asyncio.sleep(_LOOK_SECONDS)


def _established(definition: Document) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == ConditionStatus.TRUE for each in conditions)

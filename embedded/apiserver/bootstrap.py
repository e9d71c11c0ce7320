"""What a new server holds before its first client: system namespaces, system priority classes, given manifests."""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from embedded.apiserver.apiextensions import definitions
from embedded.apiserver.apimachinery.objects import Object, decode_object, name_of, namespace_of
from embedded.apiserver.apimachinery.resource_types import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PRIORITY_CLASSES
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.storage.state_directory import StateDirectory, StateError
from embedded.apiserver.validation.objects import SYSTEM_CLASSES

_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_DESCRIPTIONS = {
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to "
    "another node if necessary.",
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


class ManifestError(ValueError):
    """A bootstrap manifest that cannot be applied; the message names the file and what is wrong in it."""


def create_system_objects(resources: Resources) -> None:
    """Those that are not there from an earlier run."""
    for name in _NAMESPACES:
        if resources.find(NAMESPACES, "", name) is None:
            resources.create(NAMESPACES, "", {"metadata": {"name": name}})
    for name, value in SYSTEM_CLASSES.items():
        obj: Object = {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
        if resources.find(PRIORITY_CLASSES, "", name) is None:
            resources.create(PRIORITY_CLASSES, "", obj)


def apply_manifests(resources: Resources, places: list[Path], *, renew: bool = True) -> None:
    """Create what the YAML files (or the directories' `*.yaml` files) contain, definitions before the rest.

    What an earlier run left is made as the manifest says; without `renew` it stays as people made it.
    """
    found = [(path, obj) for place in places for path in _files(place) for obj in _documents(path)]
    for path, obj in sorted(found, key=lambda item: item[1].get("kind") != "CustomResourceDefinition"):
        _create(resources, path, obj, renew)


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        # A kustomization is an instruction to kubectl about the other files, not an object of the cluster.
        found = (path for path in place.iterdir() if path.suffix in (".yaml", ".yml"))
        return sorted(path for path in found if path.stem != "kustomization")
    return [place]


def _documents(path: Path) -> list[Object]:
    try:
        documents: list[Any] = [document for document in yaml.safe_load_all(path.read_text()) if document is not None]
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read as YAML: {error}") from None
    for document in documents:
        if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
            raise ManifestError(f"{path}: every document needs apiVersion and kind")
    return documents


def _create(resources: Resources, path: Path, obj: Object, renew: bool) -> None:
    rtype = resources.registry.by_kind(str(obj["apiVersion"]), str(obj["kind"]))
    if rtype is None:
        raise ManifestError(f"{path}: no resource of kind {obj['kind']} in {obj['apiVersion']} is served")
    namespace = namespace_of(obj) or ("default" if rtype.namespaced else "")
    try:
        if resources.find(rtype, namespace, name_of(obj)) is None:
            resources.create(rtype, namespace, obj)
        elif renew:
            resources.update(rtype, namespace, name_of(obj), lambda live: _renewed(live, obj))
    except StatusError as error:
        raise ManifestError(f"{path}: {rtype.kind} {name_of(obj)}: {error.message}") from None


def _renewed(live: Object, given: Object) -> Object:
    """An object of an earlier run as its manifest has it; what others added to its metadata and status stays."""
    meta = dict(live["metadata"])
    for key in ("labels", "annotations"):
        if kept := {**(meta.get(key) or {}), **(given["metadata"].get(key) or {})}:
            meta[key] = kept
    return {**live, **given, "metadata": meta, **({"status": live["status"]} if "status" in live else {})}


def restore(resources: Resources, directory: StateDirectory) -> int:
    """Put back everything an earlier run left, definitions first; returns how many objects. Raises StateError."""
    found = [(type_id, _decoded(type_id, body)) for type_id, body in directory.objects()]
    found.sort(key=lambda item: item[0] != CUSTOM_RESOURCE_DEFINITIONS.id)
    for type_id, obj in found:
        rtype = resources.stored_type(type_id)
        if rtype is None:
            raise StateError(f"--state-dir: holds objects of type {type_id}, which this program does not serve")
        if rtype is CUSTOM_RESOURCE_DEFINITIONS:
            definitions.serve(resources.registry, obj)
        definitions.load(resources.store, rtype, obj)
    return len(found)


def _decoded(type_id: str, body: bytes) -> Object:
    try:
        return decode_object(body)
    except msgspec.DecodeError as error:
        raise StateError(f"--state-dir: an object of type {type_id} is damaged: {error}") from None

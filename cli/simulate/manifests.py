"""Kubernetes objects from files, as kubectl takes them: YAML or JSON documents, Lists, folders, standard input."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cli.documents import documents, name_of, too_deep
from kube import objects
from kube.dialects.documents.document import checked
from kube.dialects.koordinator.topology import NodeResourceTopology
from model.fault import ConfigurationFault

_SUFFIXES = (".json", ".yaml", ".yml")


class Kind(NamedTuple):
    """A kind of object, of the group that is meant where an object does not name one."""

    group: str
    type: type[msgspec.Struct]
    namespaced: bool = False


NODE_KINDS = {
    "Node": Kind("", objects.Node),
    "Pod": Kind("", objects.Pod, namespaced=True),
    "ConfigMap": Kind("", objects.ConfigMap, namespaced=True),
    "NodeMetric": Kind("slo.koordinator.sh", objects.NodeMetric),
    "NodeSLO": Kind("slo.koordinator.sh", objects.NodeSLO),
    "NodeResourceTopology": Kind("topology.node.k8s.io", NodeResourceTopology),
}


class GivenObject(msgspec.Struct, frozen=True):
    """One object; `where` is its file and document, `label` what a dialect's faults call it, `document` what the file
    has.
    """

    object: Any
    where: str
    label: str
    document: Mapping[str, Any] = {}


class Manifests:
    """Everything the files hold, by kind, then namespace/name. An object given twice counts as written last.

    Where a kind exists in two groups, the further one is known as `Kind.group`.
    """

    def __init__(self, kinds: Mapping[str, Kind] = NODE_KINDS) -> None:
        self.kinds = kinds
        self._by_kind: dict[str, dict[str, GivenObject]] = {kind: {} for kind in kinds}
        self.skipped: set[str] = set()

    def of(self, kind: str) -> Iterable[GivenObject]:
        """All objects of a kind, in the order given."""
        return self._by_kind[kind].values()

    def named(self, kind: str, name: str) -> GivenObject | None:
        """An object without a namespace."""
        return self._by_kind[kind].get(f"/{name}")

    def take(self, others: Manifests) -> None:
        """All objects of others of the same kinds, too."""
        for kind, found in others._by_kind.items():
            self._by_kind[kind] |= found
        self.skipped |= others.skipped

    def put(self, kind: str, key: str, given: GivenObject) -> None:
        """An object that no file has."""
        self._by_kind[kind][key] = given

    def add(self, document: object, where: str) -> None:
        """One object, or a List of them. Raises ConfigurationFault naming file, document, object and field."""
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str) or not document["kind"]:
            raise ConfigurationFault(where, "is no Kubernetes object", "give it apiVersion, kind and metadata")
        kind: str = document["kind"]
        if kind.endswith("List") and "items" in document:
            self._add_items(document, kind.removesuffix("List"), where)
        elif (known := self._known(kind, _group(document))) is not None:
            key, given = _given(document, kind, self.kinds[known], where)
            self._by_kind[known][key] = given
        else:
            self.skipped.add(f"{kind} of {_group(document)}" if kind in self.kinds else kind)

    def _known(self, kind: str, group: str | None) -> str | None:
        """What the kind of this group is known as."""
        names = (kind, f"{kind}.{group}")
        return next((n for n in names if n in self.kinds and group in (None, self.kinds[n].group)), None)

    def _add_items(self, document: dict[str, Any], kind: str, where: str) -> None:
        """The items of a NodeList do not say that they are Nodes, those of a List do."""
        items = document["items"] or []
        if not isinstance(items, list):
            raise ConfigurationFault(f"{where}: items", "is no list", "give it as kubectl get prints it")
        for index, item in enumerate(items):
            told = {"kind": kind, "apiVersion": document.get("apiVersion"), **item} if isinstance(item, dict) else item
            self.add(told, f"{where} item {index + 1}")


def read(files: Iterable[Path], kinds: Mapping[str, Kind] = NODE_KINDS) -> Manifests:
    """Raises ConfigurationFault naming the file and what is wrong with it."""
    found = Manifests(kinds)
    for file in _expanded(files):
        where = name_of(file)
        try:
            for number, document in enumerate(documents(file), 1):
                if document is not None:
                    found.add(document, f"{where} document {number}")
        except RecursionError as error:
            raise too_deep(where) from error
    return found


def placed(fault: ConfigurationFault, *given: GivenObject | None) -> ConfigurationFault:
    """A dialect's fault with the file and document of the object it names."""
    wheres = [item.where for item in given if item and fault.where.startswith(f"{item.label}:")]
    return ConfigurationFault(": ".join([*wheres, fault.where]), fault.what, fault.fix)


def _expanded(files: Iterable[Path]) -> Iterator[Path]:
    """A folder stands for its manifests in the order of their names, without folders below it, as for kubectl."""
    for file in files:
        if not file.is_dir():
            yield file
            continue
        inside = sorted(path for path in file.iterdir() if path.suffix in _SUFFIXES and path.is_file())
        if not inside:
            raise ConfigurationFault(str(file), f"holds no {', '.join(_SUFFIXES)} file", "check -f")
        yield from inside


def _group(document: dict[str, Any]) -> str | None:
    """The API group; other groups have a Node too (longhorn.io). None where the object does not say."""
    version = document.get("apiVersion")
    return version.rpartition("/")[0] if isinstance(version, str) else None


def _packed(present: dict[str, Any], known: Kind) -> dict[str, Any]:
    """With a spec that is kept as bytes of JSON as such."""
    kept = any(field.name == "spec" and field.type is msgspec.Raw for field in msgspec.structs.fields(known.type))
    return {**present, "spec": msgspec.Raw(msgspec.json.encode(present.get("spec")))} if kept else present


def _given(document: dict[str, Any], kind: str, known: Kind, where: str) -> tuple[str, GivenObject]:
    metadata = document.get("metadata")
    told = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(told, str) or not told:
        raise ConfigurationFault(f"{where}: {kind}", "has no metadata.name", "name it")
    present = {key: value for key, value in document.items() if value is not None}
    try:
        found: Any = checked(_packed(present, known), known.type, "")
    except ConfigurationFault as fault:
        field = fault.where.removeprefix(".")
        raise ConfigurationFault(f"{where}: {kind} {told}: {field}".rstrip(": "), fault.what, fault.fix) from fault
    namespace = (found.metadata.namespace or "default") if known.namespaced else ""
    found = msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, namespace=namespace))
    name = f"{namespace}/{told}" if namespace else told
    return f"{namespace}/{told}", GivenObject(found, where, f"{kind} {name}", present)

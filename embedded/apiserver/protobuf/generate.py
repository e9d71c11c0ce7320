"""Makes `messages.json.z` from the Go types of Kubernetes. To be run by hand when they get new fields:

go mod download -json k8s.io/api@v0.36.2 k8s.io/apimachinery@v0.36.2    # says where they are
python -m embedded.apiserver.protobuf.generate DIRECTORY_OF_API DIRECTORY_OF_APIMACHINERY
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from embedded.apiserver.protobuf import DATA, DIRECTORIES, Field, Message

_ROOTS = {
    "core/v1": (
        *("Binding", "ConfigMap", "Endpoints", "Event", "Namespace", "Node", "Pod", "PodTemplate"),
        *("ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
    ),
    "admissionregistration/v1": (
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ),
    "apps/v1": ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "authentication/v1": ("SelfSubjectReview", "TokenRequest", "TokenReview"),
    "authorization/v1": (
        *("LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"),
    ),
    "batch/v1": ("CronJob", "Job"),
    "coordination/v1": ("Lease",),
    "discovery/v1": ("EndpointSlice",),
    "events/v1": ("Event",),
    "meta/v1": ("DeleteOptions",),
    "networking/v1": ("Ingress", "NetworkPolicy"),
    "policy/v1": ("Eviction", "PodDisruptionBudget"),
    "rbac/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "scheduling/v1": ("PriorityClass",),
}
_SPECIAL = {
    "meta/v1.Time": "time",
    "meta/v1.MicroTime": "microtime",
    "meta/v1.FieldsV1": "json",
    "api/resource.Quantity": "quantity",
    "util/intstr.IntOrString": "intorstring",
    "runtime.RawExtension": "json",
}
_SCALARS = {"string": "text", "bool": "bool", "int": "int", "int32": "int", "int64": "int", "types.UID": "text"}
_IMPORT = re.compile(r'^\s+(?:(\w+) )?"k8s\.io/(?:api|apimachinery/pkg(?:/apis)?)/([\w/]+)"$', re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) ([\w\[\].*]+)$", re.M)
_TAGGED = re.compile(r'^\t(?:\w+\s+)?(\S+)\s+`json:"([^",]*)([^"]*)".*?protobuf:"\w+,(\d+),[^"]*"', re.M)


@dataclass(frozen=True)
class _Package:
    """The types of one Go package, by name: the text inside a struct, or what a name stands for."""

    path: str
    structs: dict[str, str]
    names: dict[str, str]
    imports: dict[str, str]


def _package(path: str, directory: Path) -> _Package:
    texts = [file.read_text() for file in sorted(directory.glob("*.go")) if not file.name.endswith("_test.go")]
    text = "\n".join(texts)
    imports = {alias or full.rpartition("/")[2]: full for alias, full in _IMPORT.findall(text)}
    return _Package(path, dict(_STRUCT.findall(text)), dict(_NAMED.findall(text)), imports)


class _Reader:
    def __init__(self, packages: dict[str, _Package]) -> None:
        self._packages = packages
        self.found: dict[str, Message] = {}

    def read(self, name: str) -> None:
        """A message and all it contains."""
        if name in self.found:
            return
        path, _, kind = name.rpartition(".")
        package = self._packages[path]
        self.found[name] = dict(self._fields(package, package.structs[kind]))
        for field in self.found[name].values():
            if field.kind == "message":
                self.read(field.of)

    def _fields(self, package: _Package, struct: str) -> Iterator[tuple[int, Field]]:
        for go_type, json_name, options, number in _TAGGED.findall(struct):
            many = go_type.startswith("[]") and go_type != "[]byte"
            kind, of = self._kind(package, go_type.removeprefix("[]") if many else go_type)
            optional = go_type.startswith("*")
            keep = optional or (kind != "text" and "omitempty" not in options)
            yield int(number), Field("" if "inline" in options else json_name, kind, of, many, keep)

    def _kind(self, package: _Package, go_type: str) -> tuple[str, str]:
        bare = go_type.removeprefix("*")
        if bare in _SCALARS:
            return _SCALARS[bare], ""
        if bare == "[]byte":
            return "bytes", ""
        if bare.startswith("map["):
            kind, of = self._kind(package, bare.partition("]")[2])
            return "map", of or kind
        return self._named_kind(package, bare)

    def _named_kind(self, package: _Package, bare: str) -> tuple[str, str]:
        alias, _, kind = bare.rpartition(".")
        path = package.imports[alias] if alias else package.path
        name = f"{path}.{kind}"
        if name in _SPECIAL:
            return _SPECIAL[name], ""
        home = self._packages[path]
        if kind in home.names:
            return self._kind(home, home.names[kind])
        return "message", name


def generate(api: Path, machinery: Path) -> dict[str, Message]:
    """All messages that the roots need."""
    packages = {f"{name}/v1": _package(f"{name}/v1", api / name / "v1") for name in DIRECTORIES.values()}
    packages["meta/v1"] = _package("meta/v1", machinery / "pkg/apis/meta/v1")
    reader = _Reader(packages)
    for path, kinds in _ROOTS.items():
        for kind in kinds:
            reader.read(f"{path}.{kind}")
    return dict(sorted(reader.found.items()))


if __name__ == "__main__":
    found = generate(Path(sys.argv[1]), Path(sys.argv[2]))
    DATA.write_bytes(zlib.compress(msgspec.json.encode(found), 9))
    print(f"{len(found)} messages, {DATA.stat().st_size} bytes")

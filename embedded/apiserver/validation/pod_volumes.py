"""Field errors of the volumes of pods. Rules and words: `validateVolumeSource` in pkg/apis/core/validation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object

_HOST_PATH_TYPES = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
)
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_LEAST_TOKEN_SECONDS, _MOST_TOKEN_SECONDS = 600, 1 << 32
_FILE_FIELDS = tuple(f"metadata.{key}" for key in ("annotations", "labels", "name", "namespace", "uid"))
_SUBSCRIPTED = re.compile(r"metadata\.(annotations|labels)\['.*'\]")
_PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def volume_list_errors(path: str, volumes: list[Object]) -> Iterator[FieldError]:
    """Names that are right and different, and one source each."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        name, here = volume["name"], f"{path}[{index}]"
        if not name:
            yield required(f"{here}.name")
        else:
            yield from names.dns_label(f"{here}.name", name)
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        sources = [key for key in volume if key != "name"]
        for key in sources[1:]:
            yield not_allowed(f"{here}.{key}", "may not specify more than 1 volume type")
        for key in sources[:1]:
            if (check := _SOURCES.get(key)) is not None:
                yield from check(f"{here}.{key}", volume[key] or {})


def _empty_dir(path: str, source: Object) -> Iterator[FieldError]:
    if str(source.get("sizeLimit") or "").startswith("-"):
        yield not_allowed(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def host_path_errors(path: str, source: Object) -> Iterator[FieldError]:
    """Of a path on a node, in pods and in PersistentVolumes."""
    if not source.get("path"):
        yield required(f"{path}.path")
        return
    yield from names.no_backsteps(f"{path}.path", source["path"])
    if (kind := source.get("type") or "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _named_files(name_key: str) -> Callable[[str, Object], Iterator[FieldError]]:
    def check(path: str, source: Object) -> Iterator[FieldError]:
        if not source.get(name_key):
            yield required(f"{path}.{name_key}")
        yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
        yield from _items(f"{path}.items", source)

    return check


def _items(path: str, source: Object) -> Iterator[FieldError]:
    for index, item in enumerate(source.get("items") or ()):
        here = f"{path}[{index}]"
        if not item.get("key"):
            yield required(f"{here}.key")
        if not item.get("path"):
            yield required(f"{here}.path")
        yield from _local_path(f"{here}.path", item.get("path") or "")
        yield from _mode(f"{here}.mode", item.get("mode"))


def _local_path(path: str, text: str) -> Iterator[FieldError]:
    yield from names.descending_path(path, text)
    if text.startswith("..") and not text.startswith("../"):
        yield bad_value(path, text, "must not start with '..'")


def _mode(path: str, mode: int | None) -> Iterator[FieldError]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield bad_value(path, mode, _MODE_RULE)


def _downward_api(path: str, source: Object) -> Iterator[FieldError]:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in source.get("items") or ():
        yield from _told_file(path, item)


def _told_file(path: str, item: Object) -> Iterator[FieldError]:
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from _local_path(f"{path}.path", item.get("path") or "")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is None and resource is None:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    elif field is not None and resource is not None:
        yield bad_value(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        if not resource.get("containerName"):
            yield required(f"{path}.resourceFieldRef.containerName")
        yield from names.resource_field(f"{path}.resourceFieldRef.resource", resource.get("resource") or "")
    elif field is not None:
        yield from _field_errors(f"{path}.fieldRef.fieldPath", field.get("fieldPath") or "")
    yield from _mode(f"{path}.mode", item.get("mode"))


def _field_errors(path: str, wanted: str) -> Iterator[FieldError]:
    if not wanted:
        yield required(path)
    elif wanted not in _FILE_FIELDS and not _SUBSCRIPTED.fullmatch(wanted):
        yield bad_value(path, wanted, f"error converting fieldPath: field label not supported: {wanted}")


def _projected(path: str, source: Object) -> Iterator[FieldError]:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    seen: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        used = [key for key in _PROJECTED if part.get(key) is not None]
        for key in used[1:]:
            yield not_allowed(f"{here}.{key}", "may not specify more than 1 volume type per source")
        for key in used:
            yield from _part(f"{here}.{key}", part[key], key)
            for item in part[key].get("items") or ():
                if item.get("path") and item["path"] in seen:
                    yield bad_value(path, part[key].get("name") or item["path"], "conflicting duplicate paths")
                seen.add(item.get("path") or "")


def _part(path: str, part: Object, kind: str) -> Iterator[FieldError]:
    if kind in ("secret", "configMap"):
        if not part.get("name"):
            yield required(f"{path}.name")
        yield from _items(f"{path}.items", part)
    elif kind == "downwardAPI":
        for item in part.get("items") or ():
            yield from _told_file(path, item)
    elif kind == "serviceAccountToken":
        seconds, around = part.get("expirationSeconds", 3600), path.rpartition(".sources")[0]
        if seconds < _LEAST_TOKEN_SECONDS:
            yield bad_value(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        if seconds > _MOST_TOKEN_SECONDS:
            yield bad_value(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        if not part.get("path"):
            yield required(f"{around}.path")
        else:
            yield from _local_path(f"{around}.path", part["path"])


def _claim(path: str, source: Object) -> Iterator[FieldError]:
    if not source.get("claimName"):
        yield required(f"{path}.claimName")


def _ephemeral(path: str, source: Object) -> Iterator[FieldError]:
    if source.get("volumeClaimTemplate") is None:
        yield required(f"{path}.volumeClaimTemplate")


def nfs_errors(path: str, source: Object) -> Iterator[FieldError]:
    """Of a directory of an NFS server, in pods and in PersistentVolumes."""
    for key in ("server", "path"):
        if not source.get(key):
            yield required(f"{path}.{key}")
    if not (source.get("path") or "").startswith("/"):
        yield bad_value(f"{path}.path", source.get("path") or "", "must be an absolute path")


def _csi(path: str, source: Object) -> Iterator[FieldError]:
    if not source.get("driver"):
        yield required(f"{path}.driver")
    yield from names.dns_subdomain(f"{path}.driver", source.get("driver") or "")


_SOURCES: dict[str, Callable[[str, Object], Iterator[FieldError]]] = {
    "configMap": _named_files("name"),
    "csi": _csi,
    "downwardAPI": _downward_api,
    "emptyDir": _empty_dir,
    "ephemeral": _ephemeral,
    "hostPath": host_path_errors,
    "nfs": nfs_errors,
    "persistentVolumeClaim": _claim,
    "projected": _projected,
    "secret": _named_files("secretName"),
}

"""The forms of meta.k8s.io/v1 in which a client may ask for objects: rows of a Table, or metadata alone."""

from collections.abc import Iterable

from local.apiserver.messages import Request
from local.apiserver.objects import Object, dig
from local.apiserver.printers import columns_of
from local.apiserver.registry import ResourceType

_GROUP = "meta.k8s.io/v1"


def wants_table(accept: str) -> bool:
    """Whether the most preferred form of the Accept header is a Table."""
    return _asks(accept, "Table")


def wants_metadata(accept: str) -> bool:
    """Whether the most preferred form of the Accept header is metadata alone."""
    return _asks(accept, "PartialObjectMetadata") or _asks(accept, "PartialObjectMetadataList")


def _asks(accept: str, form: str) -> bool:
    preferred = accept.split(",", 1)[0].replace(" ", "").split(";")
    return f"as={form}" in preferred and "g=meta.k8s.io" in preferred


def included(request: Request) -> str:
    """How much of each object travels with its row."""
    return request.query.get("includeObject") or "Metadata"


def table(
    rtype: ResourceType, objects: Iterable[Object], include: str, now: float, with_columns: bool = True
) -> Object:
    """Rows for objects; `include` (None, Metadata, Object) says how much of each travels with its row."""
    columns = columns_of(rtype)
    stored = rtype.form.stored if rtype.form is not None else _itself  # columns are those of the stored form
    rows = [
        {"cells": [column.cell(stored(obj), now) for column in columns], "object": _carried(obj, include)}
        for obj in objects
    ]
    result: Object = {"kind": "Table", "apiVersion": _GROUP, "metadata": {}, "rows": rows}
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns
    ]
    result["columnDefinitions"] = definitions if with_columns else None
    return result


def _itself(obj: Object) -> Object:
    return obj


def _carried(obj: Object, include: str) -> Object | None:
    if include == "None":
        return None
    return obj if include == "Object" else metadata_only(obj)


def metadata_only(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _GROUP, "metadata": dig(obj, "metadata", {})}


def metadata_list(objects: Iterable[Object], meta: Object) -> Object:
    items = [metadata_only(obj) for obj in objects]
    return {"kind": "PartialObjectMetadataList", "apiVersion": _GROUP, "metadata": meta, "items": items}

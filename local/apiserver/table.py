"""meta.k8s.io/v1 Tables: what the server answers when a client asks for rows instead of objects."""

from collections.abc import Iterable

from local.apiserver.objects import Object, dig
from local.apiserver.printers import columns_of
from local.apiserver.registry import ResourceType


def wants_table(accept: str) -> bool:
    """Whether the most preferred form of the Accept header is a Table."""
    preferred = accept.split(",", 1)[0].replace(" ", "")
    return "as=Table" in preferred and "g=meta.k8s.io" in preferred


def table(
    rtype: ResourceType, objects: Iterable[Object], include: str, now: float, with_columns: bool = True
) -> Object:
    """Rows for objects; `include` (None, Metadata, Object) says how much of each travels with its row."""
    columns = columns_of(rtype)
    rows = [
        {"cells": [column.cell(obj, now) for column in columns], "object": _carried(obj, include)} for obj in objects
    ]
    result: Object = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "rows": rows}
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


def _carried(obj: Object, include: str) -> Object | None:
    if include == "None":
        return None
    if include == "Object":
        return obj
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": dig(obj, "metadata", {})}

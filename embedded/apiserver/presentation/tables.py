"""The forms of meta.k8s.io/v1 in which a client may ask for objects: rows of a Table, or metadata alone."""

from collections.abc import Iterable, Sequence

from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import not_acceptable
from embedded.apiserver.presentation.printers import columns_of
from embedded.apiserver.request.messages import Request

_GROUP = "meta.k8s.io/v1"
_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_VERSIONS = ("v1", "v1beta1")


def wants_table(accept: str) -> bool:
    """Whether the most preferred form of the Accept header is a Table."""
    return _asks(accept, "Table")


def wants_metadata(accept: str) -> bool:
    """Whether the most preferred form of the Accept header is metadata alone."""
    return _asks(accept, "PartialObjectMetadata") or _asks(accept, "PartialObjectMetadataList")


def wants_metadata_of(accept: str, one: bool) -> bool:
    """The same of one object or of a list; raises 406 where the other is asked for."""
    if not wants_metadata(accept):
        return False
    asked = "PartialObjectMetadata" if _asks(accept, "PartialObjectMetadata") else "PartialObjectMetadataList"
    if one != (asked == "PartialObjectMetadata"):
        raise not_acceptable(f"you requested {asked}, but the requested object is {'not ' if one else ''}a list")
    return True


def _asks(accept: str, form: str) -> bool:
    preferred = accept.split(",", 1)[0].replace(" ", "").split(";")
    return f"as={form}" in preferred and is_form(preferred)


def is_form(parameters: Sequence[str]) -> bool:
    """Whether the parameters of an Accept clause name one of the forms."""
    asked = dict(parameter.partition("=")[::2] for parameter in parameters)
    return asked.get("as") in _FORMS and asked.get("g") == "meta.k8s.io" and asked.get("v") in _VERSIONS


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

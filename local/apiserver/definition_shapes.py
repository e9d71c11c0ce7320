"""Types of the fields of custom resource definitions that this server reads."""

from typing import Any

import msgspec

from local.apiserver.objects import Object
from local.apiserver.pod_shapes import Metadata, Shape


class Names(Shape):
    plural: str
    kind: str
    singular: str | None = None
    list_kind: str | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class PrinterColumn(Shape):
    name: str
    type: str
    json_path: str = msgspec.field(name="jsonPath")
    description: str | None = None
    priority: int | None = None
    format: str | None = None


class Schema(Shape):
    """A structural schema, as deep as it goes."""

    type: str | None = None
    properties: dict[str, "Schema"] | None = None
    items: "Schema | None" = None
    additional_properties: "Schema | bool | None" = None
    required: list[str] | None = None
    enum: list[Any] | None = None
    pattern: str | None = None
    nullable: bool | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool | None = None
    exclusive_maximum: bool | None = None
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: "list[Schema] | None" = None
    any_of: "list[Schema] | None" = None
    one_of: "list[Schema] | None" = None
    not_: "Schema | None" = msgspec.field(default=None, name="not")


class DefinitionSchema(Shape):
    schema: Schema | None = msgspec.field(default=None, name="openAPIV3Schema")


class DefinitionVersion(Shape):
    name: str
    served: bool
    storage: bool
    schema: DefinitionSchema | None = None
    subresources: dict[str, Any] | None = None
    additional_printer_columns: list[PrinterColumn] | None = None


class DefinitionSpec(Shape):
    group: str
    names: Names
    scope: str
    versions: list[DefinitionVersion]
    preserve_unknown_fields: bool | None = None


class Definition(Shape):
    spec: DefinitionSpec
    metadata: Metadata | None = None
    status: Object | None = None

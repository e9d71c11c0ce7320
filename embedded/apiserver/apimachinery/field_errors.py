"""Causes of a 422, one for each wrong field: the constructors mirror apimachinery's `field` package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from embedded.apiserver.apimachinery.objects import encode


@dataclass(frozen=True, slots=True)
class FieldError:
    """One wrong field: where, which kind of wrong, and in words."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def _shown(value: Any) -> str:
    return encode(value).decode()


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def bad_value(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")


def bad_type(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueTypeInvalid", f"Invalid value: {_shown(value)}: {detail}")


def not_supported(path: str, value: Any, allowed: Sequence[Any]) -> FieldError:
    choices = ", ".join(_shown(choice) for choice in allowed)
    return FieldError(
        path, "FieldValueNotSupported", f"Unsupported value: {_shown(value)}: supported values: {choices}"
    )


def not_allowed(path: str, detail: str) -> FieldError:
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def too_long(path: str, most_bytes: int) -> FieldError:
    return FieldError(path, "FieldValueTooLong", f"Too long: may not be more than {most_bytes} bytes")


def too_many(path: str, count: int, most: int) -> FieldError:
    items = "item" if most == 1 else "items"
    return FieldError(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} {items}")


def not_existing(path: str, value: Any) -> FieldError:
    """A reference within the object to a part that it does not have."""
    return FieldError(path, "FieldValueNotFound", f"Not found: {_shown(value)}")


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    return FieldError(path, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}{detail and ': '}{detail}")

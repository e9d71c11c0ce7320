"""Where the rules of a schema stand and point to, and what is wrong with them besides their expressions.

Source: kubernetes `apiextensions-apiserver/pkg/apis/apiextensions/validation`, `schema/cel` (ValidFieldPath).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_supported, required
from embedded.apiserver.apimachinery.objects import Object

_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<key>(?:\\.|[^'\\])*)'\]")
_ESCAPE = re.compile(r"\\(.)")


class InvalidPath(ValueError):
    """The text names no field of the schema."""


def field_path(text: str, schema: Object) -> str:
    """`.spec['a.b']` as errors tell it: `spec.a.b`. Raises InvalidPath."""
    at, path = 0, ""
    while at < len(text):
        step = _STEP.match(text, at)
        if step is None:
            if text[at] in ".[":
                raise InvalidPath(
                    "unexpected end of JSON path" if at == len(text) - 1 else "does not refer to a valid field"
                )
            raise InvalidPath(f"expected [ or . but got: {text[at:]}")
        name = step["name"] if step["name"] is not None else _ESCAPE.sub(r"\1", step["key"])
        path, schema = _below(path, name, schema)
        at = step.end()
    return path


def _below(path: str, name: str, schema: Object) -> tuple[str, Object]:
    properties, rest = schema.get("properties"), schema.get("additionalProperties")
    if properties is not None and name in properties:
        return f"{path}.{name}" if path else name, properties[name]
    if properties is None and isinstance(rest, dict):
        return f"{path}[{name}]", rest
    raise InvalidPath("does not refer to a valid field")


def rule_errors(path: str, rule: Object, schema: Object) -> Iterator[FieldError]:
    """What is wrong with one rule of a schema, whatever its expressions say."""
    text, message, told = rule.get("rule") or "", rule.get("message") or "", rule.get("messageExpression") or ""
    if not text.strip():
        yield required(f"{path}.rule", "rule is not specified")
    if message and not message.strip():
        yield bad_value(f"{path}.message", message, "message must be non-empty if specified")
    elif _is_split(message.strip()):
        yield bad_value(f"{path}.message", message, "message must not contain line breaks")
    elif _is_split(text.strip()) and not message.strip():
        yield required(f"{path}.message", "message must be specified if rule contains line breaks")
    if told and not told.strip():
        yield required(f"{path}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield not_supported(f"{path}.reason", rule["reason"], _REASONS)
    yield from _path_errors(f"{path}.fieldPath", rule.get("fieldPath") or "", schema)


def _is_split(text: str) -> bool:
    return "\n" in text or "\r" in text


def _path_errors(path: str, text: str, schema: Object) -> Iterator[FieldError]:
    if text and not text.strip():
        yield bad_value(path, text, "fieldPath must be non-empty if specified")
    if _is_split(text):
        yield bad_value(path, text, "fieldPath must not contain line breaks")
    try:
        field_path(text, schema)
    except InvalidPath as error:
        yield bad_value(path, text, f"fieldPath must be a valid path: {error}")

"""Query options of a request for a container's log, checked before any node is asked.

Source: kubernetes pkg/apis/core/validation (ValidatePodLogOptions), words included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed
from embedded.apiserver.apimachinery.status import invalid_log_options
from embedded.apiserver.request.query_options import integer

# Option → its least value, and what a smaller one is told.
_LEAST = {
    "tailLines": (0, "must be greater than or equal to 0"),
    "limitBytes": (1, "must be greater than 0"),
    "sinceSeconds": (1, "must be greater than 0"),
}


def check_log_options(pod: str, query: Mapping[str, str]) -> None:
    """Raise 400 for a number that cannot be read, 422 for options that are not allowed."""
    numbers = {name: integer(query[name]) for name in _LEAST if query.get(name)}
    if errors := list(_errors(numbers, bool(query.get("sinceTime")))):
        raise invalid_log_options(pod, errors)


def _errors(numbers: Mapping[str, int], since_time: bool) -> Iterator[FieldError]:
    both = since_time and "sinceSeconds" in numbers
    for name, value in numbers.items():
        least, why = _LEAST[name]
        if value < least and not (both and name == "sinceSeconds"):
            yield bad_value(name, value, why)
    if both:
        yield not_allowed("", "at most one of `sinceTime` or `sinceSeconds` may be specified")

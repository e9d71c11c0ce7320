"""Regular expressions of schemas, in the syntax of RE2 as Kubernetes has them: the engine of CEL brings it along."""

from __future__ import annotations

import re
from functools import lru_cache

from embedded.apiserver.cel.expressions import STRING, Environment, EvaluationError

_NAMES = Environment({"text": STRING, "pattern": STRING})
_SEARCH = _NAMES.compile("text.matches(pattern)")
_REMEMBERED_CHARACTERS = 256
_ANY_BYTE = re.compile(r"(?<!\\)(\\\\)*\\C")


@lru_cache(maxsize=512)
def fault(pattern: str) -> str:
    """What is wrong with a pattern; empty for a good one."""
    if _ANY_BYTE.search(pattern):  # which Go does not have
        return "error parsing regexp: invalid escape sequence: `\\C`"
    try:
        _search(pattern, "")
    except EvaluationError as error:
        return f"error parsing regexp: {str(error).removeprefix('invalid regular expression: ')}"
    return ""


def found_in(text: str, pattern: str) -> bool:
    """Whether a good pattern is found anywhere in a text."""
    short = len(text) <= _REMEMBERED_CHARACTERS
    return _remembered(pattern, text) if short else _search(pattern, text)


def _search(pattern: str, text: str) -> bool:
    return bool(_SEARCH.value(_NAMES.activation({"text": text, "pattern": pattern})))


_remembered = lru_cache(maxsize=16384)(_search)

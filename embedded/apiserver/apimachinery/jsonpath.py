r"""JSONPath as client-go reads it in printer columns: `.spec.a`, `['a.b']`, `\.`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `..a`,
`[?(@.a=="b")]`.

https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""(?P<deep>\.\.)?(?:"""
    r"""(?P<all>\[\*\]|\.?\*)"""
    r"""|\[\?\(\s*@(?P<path>(?:\.[^=!<>\s)]+)+)\s*(?:(?P<test>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|[^\s)]+)\s*)?\)\]"""
    r"""|\[["'](?P<quoted>[^"']+)["']\]"""
    r"""|\[(?P<from>-?\d*):(?P<to>-?\d*)\]"""
    r"""|\[(?P<index>-?\d+)\]"""
    r"""|\.?(?P<name>(?:\\.|[^.\[\]\\*])+))"""
)
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LITERALS = {"true": True, "false": False}


def is_valid(path: str) -> bool:
    return _steps(path) is not None


def find(path: str, obj: Any) -> list[Any]:
    """Every value at the path, in order; none where the path is malformed."""
    steps = _steps(path)
    values = [obj]
    for step in steps or ():
        if step["deep"]:
            values = [inner for value in values for inner in _within(value)]
        values = [item for value in values for item in _follow(value, step)]
    return [] if steps is None else values


@lru_cache(maxsize=1024)
def _steps(path: str) -> tuple[re.Match[str], ...] | None:
    steps, at = [], 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return None
        steps.append(found)
        at = found.end()
    return tuple(steps)


def _within(value: Any) -> Iterator[Any]:
    """The value and everything in it."""
    yield value
    for inner in _members(value):
        yield from _within(inner)


def _members(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _follow(value: Any, step: re.Match[str]) -> list[Any]:
    name = step["quoted"] or (re.sub(r"\\(.)", r"\1", step["name"]) if step["name"] else None)
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if step["all"]:
        return _members(value)
    if not isinstance(value, list):
        return []
    if step["path"]:
        return [item for item in value if _passes(item, step)]
    if step["index"]:
        index = int(step["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    return value[slice(*(int(step[key]) if step[key] else None for key in ("from", "to")))]


def _passes(item: Any, step: re.Match[str]) -> bool:
    found = find(step["path"], item)
    if not found or not step["test"]:
        return bool(found)
    try:
        return _TESTS[step["test"]](found[0], _literal(step["value"]))
    except TypeError:  # values that have no order
        return False


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return _LITERALS[text] if text in _LITERALS else float(text)
    except ValueError:
        return text

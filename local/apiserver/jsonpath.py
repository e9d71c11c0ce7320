r"""JSONPath of printer columns: `.spec.a`, `.spec['a.b']`, `.items[0]`, `.items[*].x`, `\.` `[?(@.a=="b")]`."""

import re
from collections.abc import Callable
from typing import Any

_STEP = re.compile(
    r"""(?P<all>\[\*\]|\.\*)|\.(?P<name>(?:\\.|[^.\[\]\\])+)"""
    r"""|\[\?\(@\.(?P<key>[^=!\s]+)\s*==\s*["'](?P<value>[^"']*)["']\s*\)\]"""
    r"""|\[["'](?P<quoted>[^"']+)["']\]|\[(?P<index>-?\d+)\]"""
)


def compile_path(path: str) -> Callable[[Any], Any]:
    """A reader of the value at the path: None when absent, joined by commas when there are several."""
    steps, at = [], 0
    text = path if path.startswith((".", "[")) else f".{path}"
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return lambda _: None
        steps.append(found)
        at = found.end()

    def read(obj: Any) -> Any:
        values = [obj]
        for step in steps:
            values = [item for value in values for item in _follow(value, step)]
        if not values or values[0] is None:
            return None
        return values[0] if len(values) == 1 else ",".join(map(str, values))

    return read


def _follow(value: Any, step: re.Match[str]) -> list[Any]:
    name = step["quoted"] or (re.sub(r"\\(.)", r"\1", step["name"]) if step["name"] else None)
    if name is not None:
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return list(value.values()) if step["all"] and isinstance(value, dict) else []
    if step["key"]:
        return [item for item in value if isinstance(item, dict) and item.get(step["key"]) == step["value"]]
    if step["all"]:
        return value
    index = int(step["index"])
    return [value[index]] if -len(value) <= index < len(value) else []

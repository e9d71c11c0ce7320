"""YAML bodies as the values that their JSON form has: what the parser says, read by the rules of sigs.k8s.io/yaml.

Those are YAML 1.1 without time stamps and base 60, and every key a text (`goyaml.v2/resolve.go`, `yaml.go`).
"""

from __future__ import annotations

import math
import re
from base64 import b64decode
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from embedded.apiserver.apimachinery.repeated_fields import Repeating

# Composing in Python bounds the depth by Python's own limit; libyaml's binding composes on the C stack, which ends.
_Bases: Any = (Composer, yaml.CSafeLoader) if hasattr(yaml, "CSafeLoader") else (yaml.SafeLoader,)
_TAG = "tag:yaml.org,2002:"
_MERGE, _TEXT, _BINARY, _PLAIN = f"{_TAG}merge", f"{_TAG}str", f"{_TAG}binary", "plain"
_RESOLVED = frozenset({_PLAIN, *(_TAG + kind for kind in ("null", "bool", "int", "float", "timestamp"))})
_MOST_REPEATED = 1 << 20  # characters that aliases may stand for in one body; kubectl itself never writes an alias
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}


def decode_yaml(body: bytes) -> Any:
    """The value of a YAML body; a `Repeating` when a key was written twice.

    Raises yaml.YAMLError, ValueError, and RecursionError for what is nested too deeply.
    """
    composer = _Composer(body)
    try:
        root = composer.get_single_node()
        value = None if root is None else composer.value(root)
    finally:
        composer.dispose()
    if composer.lines and isinstance(value, dict):
        value = Repeating(value)
        value.lines = tuple(composer.lines)
    return value


class _Composer(*_Bases):  # type: ignore[misc]
    """Composes nodes and reads them; refuses aliases that stand for themselves or for too much, notes repeated keys."""

    def __init__(self, body: bytes) -> None:
        _Bases[-1].__init__(self, body)
        self.anchors: dict[str, Node] = {}
        self.lines: list[str] = []
        self._size = 0  # nodes and characters so far, an alias counted as what it stands for
        self._repeated = 0  # the part of it that is due to aliases
        self._sizes: dict[str, int] = {}  # of the nodes with anchors, once they are complete

    def resolve(self, kind: type[Node], value: str, implicit: Any) -> str:
        """The tag of a node that has none of its own."""
        if kind is not ScalarNode or not implicit[0]:
            return _TEXT
        return _MERGE if value == "<<" else _PLAIN

    def compose_node(self, parent: Node | None, index: Any) -> Node:
        event, before = self.peek_event(), self._size
        node: Node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent):
            self._count_alias(event)
            return node
        self._size += 1 + (len(event.value) if isinstance(event, yaml.ScalarEvent) else 0)
        if event.anchor is not None:
            self._sizes[event.anchor] = self._size - before
        return node

    def _count_alias(self, event: yaml.AliasEvent) -> None:
        size = self._sizes.get(event.anchor or "")
        if size is None:
            raise _refused(f"anchor {event.anchor!r} value contains itself", event)
        self._size += size
        self._repeated += size
        if self._repeated > _MOST_REPEATED:
            raise _refused("document contains excessive aliasing", event)

    def compose_mapping_node(self, anchor: str | None) -> Node:
        node: MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for at in (at for at, _ in node.value if at.tag != _MERGE):
            key = _key(at)
            if key in seen:
                self.lines.append(f'line {at.start_mark.line + 1}: key "{key}" already set in map')
            seen.add(key)
        return node

    def value(self, node: Node) -> Any:
        """What a node stands for, made again for every alias of it."""
        if isinstance(node, MappingNode):
            self.flatten_mapping(node)
            return {_key(key): self.value(item) for key, item in node.value}
        if isinstance(node, SequenceNode):
            return [self.value(item) for item in node.value]
        return _scalar(node)


def _refused(why: str, at: Any) -> yaml.YAMLError:
    """At a node or an event."""
    return yaml.YAMLError(f"line {at.start_mark.line + 1}: {why}")


def _key(node: Node) -> str:
    """A map key in JSON's form. Raises YAMLError for a null, a list or a map."""
    key = _scalar(node) if isinstance(node, ScalarNode) else None
    if key is None:
        raise _refused("invalid map key", node)
    return str(key).lower() if isinstance(key, bool) else str(key)


def _scalar(node: Node) -> Any:
    text: str = node.value
    if node.tag in _RESOLVED:
        return _plain(text)
    return b64decode(text, validate=False).decode() if node.tag == _BINARY else text


def _plain(text: str) -> Any:
    """What a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    return _number(text) if text[0] in "+-.0123456789" and text.isascii() else text


def _number(text: str) -> Any:
    """The number that a text stands for, or the text."""
    digits = text.replace("_", "")
    for base in (0, 8):  # the second for octal numbers without an o
        try:
            return int(digits, base)
        except ValueError:
            continue
    if not _FLOAT.fullmatch(digits):
        return text
    number = float(digits)
    return int(number) if number.is_integer() and abs(number) < 1e21 else number  # as Go writes it into JSON

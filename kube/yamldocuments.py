"""YAML documents as values, read as Kubernetes reads them: a time stays text.

Whatever PyYAML raises is one error in one line, and aliases stand for a bounded amount: a few hundred bytes of them
are billions of values otherwise.
"""

from __future__ import annotations

from typing import Any, ClassVar

import yaml

_TIMESTAMP = "tag:yaml.org,2002:timestamp"
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_REPEATED = 1 << 20
"""Values and characters that the aliases of one text may stand for; kubectl itself never writes an alias."""
_UNFINISHED = -1


class InvalidYaml(ValueError):
    """A text is no YAML, or stands for more than it may; says why in one line."""


def yaml_documents(text: bytes | str) -> list[Any]:
    """The values of a text's documents, None for one that is empty. Raises InvalidYaml."""
    try:
        documents = list(yaml.load_all(text, _TextTimes))
    except RecursionError as error:
        raise InvalidYaml("is nested too deeply") from error
    # PyYAML lets through what its constructors raise on a tag whose content does not fit.
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise InvalidYaml(" ".join(str(error).split())) from error
    if (b"*" in text) if isinstance(text, bytes) else ("*" in text):
        _check_aliases(documents)
    return documents


def _check_aliases(documents: list[Any]) -> None:
    try:
        _Repeated().size_of(documents)
    except RecursionError as error:
        raise InvalidYaml("is nested too deeply") from error


def yaml_document(text: bytes | str) -> Any:
    """The value of the one document in a text, None for an empty text. Raises InvalidYaml."""
    documents = yaml_documents(text)
    if len(documents) > 1:
        raise InvalidYaml(f"holds {len(documents)} documents, not one")
    return documents[0] if documents else None


class _TextTimes(_Loader):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMESTAMP]
        for first, resolvers in _Loader.yaml_implicit_resolvers.items()
    }


class _Repeated:
    """The size of what aliases stand for, each counted as often as it stands there."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}  # of values seen, by identity: an alias is the value itself
        self._size = 0

    def size_of(self, value: Any) -> int:
        """Values and characters in a value. Raises InvalidYaml where it is in itself, or too much repeats."""
        inside = _inside(value)
        if not inside:
            return 1
        if (known := self._sizes.get(id(value))) is not None:
            return self._again(known)
        self._sizes[id(value)] = _UNFINISHED
        size = len(inside) if isinstance(inside, str) else 1 + sum(map(self.size_of, inside))
        self._sizes[id(value)] = size
        return size

    def _again(self, size: int) -> int:
        if size == _UNFINISHED:
            raise InvalidYaml("an alias stands for a value that it is part of")
        self._size += size
        if self._size > _MOST_REPEATED:
            raise InvalidYaml(f"its aliases stand for more than {_MOST_REPEATED} values and characters")
        return size


def _inside(value: Any) -> Any:
    """What a value is made of; nothing of a number, and of a short text, which Python keeps once."""
    if isinstance(value, dict):
        return tuple(value.values())
    return value if isinstance(value, (list, tuple)) or (isinstance(value, str) and len(value) > 1) else ()

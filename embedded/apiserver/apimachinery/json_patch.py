"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386)."""

from typing import Any

from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import copy, decode, encode
from embedded.apiserver.apimachinery.status import StatusError, bad_request

_MOST_OPERATIONS = 10_000  # `maxJSONPatchOperations` of apiserver's patch handler
MOST_COPIED_BYTES = 3 << 20  # `JSONPatchMaxCopyBytes` of its configuration


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in; a null removes, a list replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    """The target after all operations in order; a failing one fails the whole patch with 422."""
    if not isinstance(operations, list) or not all(isinstance(item, dict) for item in operations):
        raise bad_request("a JSON patch must be a list of operations")
    if len(operations) > _MOST_OPERATIONS:
        told = f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", told)
    document, copies = copy(target), _Copies()
    for operation in operations:
        document = _apply(document, operation, copies)
    return document


class _Copies:
    """What the copies of one patch add up to: each may double the document, so forty could fill any memory."""

    def __init__(self) -> None:
        self._bytes = 0

    def made(self, value: Any) -> Any:
        """A copy of a value. Raises 422 beyond the bound, in the words of the library that kube-apiserver uses."""
        encoded = encode(value)
        self._bytes += len(encoded)
        if self._bytes > MOST_COPIED_BYTES:
            told = f"the accumulated size increase of copy is {self._bytes}, exceeding the limit {MOST_COPIED_BYTES}"
            raise _refused(f"Unable to complete the copy, {told}")
        return decode(encoded)


def _apply(document: Any, operation: dict[str, Any], copies: _Copies) -> Any:
    """One operation as the library of kube-apiserver carries it out: a key that a map lacks reads as null."""
    kind, path, value = operation.get("op"), _pointer(operation.get("path")), operation.get("value")
    match kind:
        case "add":
            return _add(document, path, value)
        case "replace":
            return _replaced(document, path, value)
        case "remove":
            return _remove(document, path)
        case "copy":
            return _add(document, path, copies.made(_read(document, _pointer(operation.get("from")))))
        case "move":
            source = _pointer(operation.get("from"))
            moved = _read(document, source)
            return _add(_remove(document, source), path, moved)
        case "test":
            if not _same(_read(document, path), value):
                raise _refused(f"testing path {operation['path']} value: test failed")
            return document
    raise _refused(f"unexpected kind: {kind}")


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON values: unlike in Python, true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _refused(message: str) -> StatusError:
    return StatusError(422, "Invalid", f"the server rejected our request due to an error in our request: {message}")


def _pointer(text: Any) -> list[str]:
    """The steps of a path; what stands before its first slash counts for nothing, as in the library."""
    if not isinstance(text, str) or (text and "/" not in text):
        raise _refused(f"{text!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _missing(path: list[str]) -> StatusError:
    return _refused(f"path /{'/'.join(path)} does not exist")


def _read(document: Any, path: list[str]) -> Any:
    if not path:
        return document
    holder, key = _holder(document, path)
    return holder.get(key) if isinstance(holder, dict) else holder[_index(key, len(holder) - 1)]


def _holder(document: Any, path: list[str]) -> tuple[dict[str, Any] | list[Any], str]:
    """The map or list that the last step of a path leads out of, and that step. Raises 422 where there is none."""
    if not path:
        raise _refused("the path names the whole document")
    for step in path[:-1]:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[_index(step, len(document) - 1)]
        else:
            raise _missing(path)
    if not isinstance(document, dict | list):
        raise _missing(path)
    return document, path[-1]


def _index(step: str, last: int) -> int:
    """A place in a list; a negative one counts from the end."""
    index = natural(step.removeprefix("-"))
    if index is not None and step.startswith("-"):
        index = last + 1 - index
    if index is None or not 0 <= index <= last:
        raise _refused(f"list index {step} is out of bounds")
    return index


def _replaced(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, key = _holder(document, path)
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder[_index(key, len(holder) - 1)] = value
    return document


def _add(document: Any, path: list[str], value: Any) -> Any:
    holder, key = _holder(document, path)
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder.insert(len(holder) if key == "-" else _index(key, len(holder)), value)
    return document


def _remove(document: Any, path: list[str]) -> Any:
    holder, key = _holder(document, path)
    if isinstance(holder, list):
        del holder[_index(key, len(holder) - 1)]
    elif key in holder:
        del holder[key]
    else:
        raise _missing(path)
    return document

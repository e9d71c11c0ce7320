"""Kubernetes objects as plain JSON dictionaries: decoding, encoding, reading by path, time stamps."""

import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

Object = dict[str, Any]
Clock = Callable[[], float]  # seconds since the epoch

_INT64_MAX = 2**63 - 1
_INT64_MIN = -(2**63)
_FRACTION = re.compile(r"\.(\d+)")

encode = msgspec.json.encode
decode = msgspec.json.decode


def decode_object(raw: bytes) -> Object:
    """An object of our own making, from its stored bytes."""
    value: Object = msgspec.json.decode(raw)
    return value


def copy(value: Object) -> Object:
    """A deep copy; four times faster than `copy.deepcopy` on objects of this kind."""
    return decode_object(encode(value))


def dig(value: Any, path: str, default: Any = None) -> Any:
    """The value at a dotted path, or `default` where any step is absent or not a map."""
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return default
        value = value[step]
    return value


def metadata(obj: Object) -> Object:
    """The object's metadata map, made when absent."""
    found = obj.setdefault("metadata", {})
    assert isinstance(found, dict)
    return found


def ensure(obj: Object, key: str) -> Object:
    """The map at `key`, made when absent or null."""
    found = obj.get(key)
    if not isinstance(found, dict):
        found = obj[key] = {}
    return found


def name_of(obj: Object) -> str:
    return str(dig(obj, "metadata.name", "") or "")


def namespace_of(obj: Object) -> str:
    return str(dig(obj, "metadata.namespace", "") or "")


def uid_of(obj: Object) -> str:
    return str(dig(obj, "metadata.uid", "") or "")


def being_deleted(obj: Object) -> bool:
    return bool(dig(obj, "metadata.deletionTimestamp"))


def controller_of(obj: Object) -> Object | None:
    """The owner reference marked as the managing controller, if there is one."""
    owners = dig(obj, "metadata.ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def unstorable(value: Any) -> str | None:
    """Path of the first number that 64-bit JSON readers cannot hold (overflow, NaN, infinity), or None."""
    held = [value]
    while held:
        item = held.pop()
        if isinstance(item, dict):
            held.extend(item.values())
        elif isinstance(item, list):
            held.extend(item)
        elif _beyond_64_bits(item):
            return _path_of_unstorable(value, "") or "."
    return None


def _beyond_64_bits(value: Any) -> bool:
    if type(value) is int:
        return not _INT64_MIN <= value <= _INT64_MAX
    return isinstance(value, float) and not math.isfinite(value)


def _path_of_unstorable(value: Any, path: str) -> str | None:
    if isinstance(value, dict):
        return _first(_path_of_unstorable(item, f"{path}.{key}") for key, item in value.items())
    if isinstance(value, list):
        return _first(_path_of_unstorable(item, f"{path}[{index}]") for index, item in enumerate(value))
    return path if _beyond_64_bits(value) else None


def _first(found: Iterator[str | None]) -> str | None:
    return next((path for path in found if path is not None), None)


def rfc3339(seconds: float) -> str:
    """metav1.Time: whole seconds, UTC."""
    return datetime.fromtimestamp(int(seconds), UTC).isoformat().replace("+00:00", "Z")


def parse_time(text: str | None) -> float | None:
    """Seconds since the epoch of an RFC 3339 text; None when it is absent or not a time of the years 1–9999 UTC."""
    if not text:
        return None
    try:
        # datetime keeps microseconds at most, while Go clients may send nanoseconds.
        moment = datetime.fromisoformat(_FRACTION.sub(lambda m: "." + m.group(1)[:6].ljust(6, "0"), text))
        return (moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def condition(obj: Object, kind: str) -> Object | None:
    """The status condition of this type, if present."""
    conditions = dig(obj, "status.conditions") or []
    return next((item for item in conditions if item.get("type") == kind), None)


def set_condition(obj: Object, wanted: Object, now: float) -> None:
    """Add or replace a status condition; its transition time moves only when its status does."""
    conditions = ensure(obj, "status").setdefault("conditions", [])
    old = condition(obj, wanted["type"])
    fresh = {"lastTransitionTime": rfc3339(now), **wanted}
    if old is None:
        conditions.append(fresh)
        return
    if old.get("status") == wanted["status"]:
        fresh["lastTransitionTime"] = old.get("lastTransitionTime", fresh["lastTransitionTime"])
    conditions[conditions.index(old)] = {**old, **fresh}


def quoted(text: str) -> str:
    """As Go's %q writes it, of text that needs no more escapes than JSON does."""
    return encode(text).decode()

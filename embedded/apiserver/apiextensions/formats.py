"""The `format` keyword of custom resources' schemas: which texts each format admits. It says nothing of numbers.

The formats are those of k8s.io/kube-openapi (pkg/validation/strfmt) that apiextensions keeps; others are not checked.
"""

import binascii
import ipaddress
import re
import uuid
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

from embedded.apiserver.apimachinery.objects import parse_time

_UNIT = (
    "ns|nano[a-z]*|us|µs|μs|micro[a-z]*|ms|milli[a-z]*|s|sec[a-z]*|m|min[a-z]*|h|hr|hour[a-z]*|d|day[a-z]*|w|wk|"
    "week[a-z]*"
)
_SPAN = rf"(\d+(\.\d*)?|\.\d+)\s*({_UNIT})"
_HOST_LABEL = r"[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?"
_PATTERNS = {
    "bsonobjectid": r"[0-9a-fA-F]{24}",
    "creditcard": r"[0-9 -]{13,23}",
    "duration": rf"[-+]?{_SPAN}(\s*{_SPAN})*|0",
    "email": r"[^@\s]+@[^@\s]+",
    "hexcolor": r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})",
    "hostname": rf"(?=.{{1,255}}$)({_HOST_LABEL}|({_HOST_LABEL}\.)+[a-zA-Z]{{2,63}})",
    "mac": r"([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}",
    "rgbcolor": r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)",
    "ssn": r"\d{3}[- ]?\d{2}[- ]?\d{4}",
}
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)")


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _uuid_version(version: int) -> Callable[[str], bool]:
    return lambda text: _parses(uuid.UUID)(text) and uuid.UUID(text).version == version


_CHECKS: dict[str, Callable[[str], bool]] = {
    "byte": _parses(lambda text: binascii.a2b_base64(text, strict_mode=True)),
    "cidr": lambda text: "/" in text and _parses(lambda it: ipaddress.ip_network(it, strict=False))(text),
    "date": lambda text: len(text) == 10 and _parses(date.fromisoformat)(text),
    "date-time": lambda text: bool(_DATE_TIME.fullmatch(text)) and parse_time(text.upper()) is not None,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "uri": _parses(lambda text: text[:1] == "/" or urlsplit(text).scheme or _fail()),
    "uuid": _parses(uuid.UUID),
    **{f"uuid{version}": _uuid_version(version) for version in (3, 4, 5)},
    **{name: _matches(re.compile(pattern)) for name, pattern in _PATTERNS.items()},
}


_KNOWN = frozenset({name.replace("-", "") for name in _CHECKS} | {"isbn", "isbn10", "isbn13", "password"})


def _fail() -> object:
    raise ValueError


def admits_text(name: str, text: str) -> bool:
    """Whether a text is of this format; true for formats nobody checks."""
    check = _CHECKS.get(name.replace("datetime", "date-time"))
    return check is None or check(text)


def is_known(name: str) -> bool:
    """Whether Kubernetes knows a format of texts; others bind nobody."""
    return name.replace("-", "") in _KNOWN

"""Kubernetes quantities: `100m`, `1.5`, `2Gi`, `1e3`.

Source: apimachinery `resource.Quantity` (https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/).
All arithmetic is exact; rounding happens only where Kubernetes rounds, and then upwards.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL_EXPONENT = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_EXPONENT_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENT.items()}
_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([KMGTPE]i)|([numkMGTPE]|)|[eE]([+-]?[0-9]+))\Z")
_LONGEST = 128
"""Digits that are read; API servers store more. Also the longest text that is remembered."""
_LARGEST_EXPONENT = 64
"""Of ten: what is beyond counts as that, and so does what is as close to 0. No machine has either."""
_SMALLEST = Fraction(1, 10**9)
_LARGEST = (1 << 63) - 1


class QuantityError(ValueError):
    """The text is not a Kubernetes quantity."""

    def __init__(self, text: object) -> None:
        shown = repr(text)[:80]
        super().__init__(f"{shown} is not a quantity; write a number with an optional suffix such as 500m, 2 or 4Gi")


def _split(text: str | int | float) -> tuple[Fraction, str]:
    """The exact value and the notation: `binary`, `decimal` or `exponent`."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(text)
    match = _FORM.match(text if isinstance(text, str) else repr(text))
    if match is None:
        raise QuantityError(text)
    sign, digits, binary, decimal, exponent = match.groups()
    sense = -1 if sign == "-" else 1
    if binary:
        return sense * _number(digits, 0) * _BINARY[binary], "binary"
    if exponent is not None:
        return sense * _number(digits, _exponent(exponent, text)), "exponent"
    return sense * _number(digits, _DECIMAL_EXPONENT[decimal]), "decimal"


def _exponent(written: str, text: object) -> int:
    """Kubernetes reads 64 bits of it and keeps 32: `1e4294967293` is 1m there."""
    figures = written.lstrip("+-").lstrip("0")
    value = (-1 if written[0] == "-" else 1) * int(figures[:20] or "0")
    if not -(1 << 63) <= value < 1 << 63:
        raise QuantityError(text)
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def _number(digits: str, exponent: int) -> Fraction:
    """`digits` with at most one point, times that power of ten; what is cut of it rounds up."""
    whole, _, part = digits.partition(".")
    figures, scale = (whole + part).lstrip("0"), exponent - len(part)
    if not figures:
        return Fraction(0)
    size = len(figures) + scale
    if abs(size) > _LARGEST_EXPONENT:
        return Fraction(10) ** (_LARGEST_EXPONENT if size > 0 else -_LARGEST_EXPONENT)
    kept, cut = figures[:_LONGEST], figures[_LONGEST:]
    value = int(kept) + (1 if cut.strip("0") else 0)
    return value * Fraction(10) ** (scale + len(cut))


def parse(text: str | int | float) -> Fraction:
    """The value of a quantity, exact where it is of usual size and length. Raises QuantityError."""
    return _split(text)[0]


def parse_millis(text: str | int | float) -> int:
    """The value in thousandths, rounded up as `Quantity.MilliValue` does. Raises QuantityError."""
    return _in_parts(text, 1000)


def parse_units(text: str | int | float) -> int:
    """The value in whole units (bytes, devices), rounded up as `Quantity.Value` does. Raises QuantityError."""
    return _in_parts(text, 1)


def _in_parts(text: str | int | float, scale: int) -> int:
    return _written(text, scale) if isinstance(text, str) and len(text) <= _LONGEST else _rounded(text, scale)


@lru_cache(maxsize=8192)
def _written(text: str, scale: int) -> int:
    """Texts repeat: a cluster's pods ask for few different amounts."""
    return _rounded(text, scale)


def _rounded(text: str | int | float, scale: int) -> int:
    return _most(_round_up(parse(text) * scale))


def canonical(text: str | int | float) -> str:
    """The form the API server stores: largest suffix that leaves a whole number. Raises QuantityError."""
    value, notation = _split(text)
    sign, magnitude = ("-", -value) if value < 0 else ("", value)
    magnitude = min(Fraction(_round_up(magnitude / _SMALLEST)) * _SMALLEST, Fraction(_LARGEST))
    if magnitude == 0:
        return "0"
    if notation == "binary" and magnitude >= 1024:
        return sign + _binary(_round_up(magnitude))
    return sign + _decimal(magnitude, exponent_form=notation == "exponent")


def format_millis(millis: int) -> str:
    """A CPU amount in thousandths as Kubernetes prints it: 1500 → `1500m`, 2000 → `2`."""
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def format_bytes(amount: int) -> str:
    """A byte amount with the largest binary suffix that stays exact: 4294967296 → `4Gi`."""
    return ("-" + _binary(-amount)) if amount < 0 else _binary(amount)


def _binary(amount: int) -> str:
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        if amount and amount % _BINARY[suffix] == 0:
            return f"{amount // _BINARY[suffix]}{suffix}"
    return str(amount)


def _decimal(magnitude: Fraction, *, exponent_form: bool) -> str:
    exponent = -9
    digits = int(magnitude / _SMALLEST)
    while digits % 1000 == 0 and exponent < 18:
        digits //= 1000
        exponent += 3
    if exponent_form:
        return f"{digits}e{exponent}" if exponent else str(digits)
    return f"{digits}{_EXPONENT_SUFFIX[exponent]}"


def _most(a: int) -> int:
    return max(-_LARGEST, min(a, _LARGEST))


def _round_up(value: Fraction) -> int:
    """Away from zero, as Quantity rounds."""
    return -((-value.numerator) // value.denominator) if value >= 0 else value.numerator // value.denominator

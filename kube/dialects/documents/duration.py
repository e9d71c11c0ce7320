"""Go's duration texts, as metav1.Duration has them: `300ms`, `1h30m`, `5m0s`."""

from __future__ import annotations

import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = re.compile(r"([0-9]{1,19}(?:\.[0-9]{0,19})?)(ns|us|µs|ms|h|m|s)")


def go_duration_seconds(text: str) -> float | None:
    """A Go duration such as `1h30m`; None where it is not one."""
    parts = _PART.findall(text)
    if not text or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def go_duration(seconds: float) -> str:
    """The text Go prints for whole seconds: 300 → `5m0s`, 5400 → `1h30m0s`. Parts of a second are dropped."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{rest}s"

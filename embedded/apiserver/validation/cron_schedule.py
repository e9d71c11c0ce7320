"""Schedules of CronJobs: what is one, and when it next comes.

https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from embedded.apiserver.apimachinery.numerals import natural

Next = Callable[[float], float | None]  # the first moment after this one (seconds), None if there is none ever

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_NAMES = (
    (),
    (),
    (),
    ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
    ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"),
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|m|s|ms)")
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class ScheduleError(ValueError):
    """A schedule or time zone that is none; the message says what is wrong with it."""


def time_zone(name: str | None) -> tzinfo:
    """The named zone of the IANA data base; UTC without a name. Raises ScheduleError."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ScheduleError(f"unknown time zone {name}") from None


def parse_schedule(text: str, zone: tzinfo) -> Next:
    """How to find the moments of a schedule. Raises ScheduleError, in upstream's words where they are known."""
    if text.startswith("@every "):
        return _every(text.removeprefix("@every ").strip())
    if text.startswith("@") and text not in _MACROS:
        raise ScheduleError(f"unrecognized descriptor: {text}")
    expression = _checked(_MACROS.get(text, text))

    def following(moment: float) -> float | None:
        found = next(CronSim(expression, datetime.fromtimestamp(moment, zone)), None)
        return None if found is None else found.timestamp()

    try:
        following(0.0)
    except CronSimError as error:
        raise ScheduleError(str(error).lower()) from None
    return following


def _every(text: str) -> Next:
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ScheduleError(f'failed to parse duration @every {text}: time: invalid duration "{text}"')
    seconds = max(1.0, float(int(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts))))
    return lambda moment: int(moment) + seconds


def _checked(text: str) -> str:
    """The five fields, in the letters of the library; extensions of other crons are refused, as upstream does."""
    fields = text.split()
    if len(fields) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for place, field in enumerate(fields):
        for part in field.split(","):
            _check_part(part, place)
    return " ".join(fields).replace("?", "*")


def _check_part(part: str, place: int) -> None:
    span, slash, step = part.partition("/")
    if slash and not natural(step):
        raise ScheduleError(f"step of range should be a positive number: {part}")
    if span in ("*", "?"):
        return
    first, dash, last = span.partition("-")
    start = _number(first, place)
    end = _number(last, place) if dash else start
    low, high = _BOUNDS[place]
    if start < low:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({low}): {part}")
    if end > high:
        raise ScheduleError(f"end of range ({end}) above maximum ({high}): {part}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {part}")


def _number(text: str, place: int) -> int:
    names = _NAMES[place]
    if text.upper() in names:
        return names.index(text.upper()) + _BOUNDS[place][0]
    number = natural(text)
    if number is None:
        why = "value out of range" if text.isascii() and text.isdecimal() else "invalid syntax"
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": {why}')
    return number

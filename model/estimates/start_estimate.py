"""Start estimate: when a workload that waits is expected to start, on what that rests, its range, and its words.

Times are Unix seconds.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class EstimateBasis(StrEnum):
    """What tells when the work before it ends; UNKNOWN: nothing does."""

    DEADLINE = "deadline"
    HISTORY = "history"
    ROOM = "room"
    UNKNOWN = "unknown"


class ExpectedEnd(msgspec.Struct, frozen=True):
    """Work whose end it waits for: when it is expected to end, and what tells that.

    `runs` are how many past runs that rests on, 0 for a deadline; `of` says whose they are.
    """

    name: str
    end_seconds: float
    basis: EstimateBasis
    runs: int = 0
    of: str = ""


class StartEstimate(msgspec.Struct, frozen=True):
    """`start_seconds` is None where it is not known, and `why` says why not.

    `earliest_seconds` and `latest_seconds` are the first and the last start that the past makes likely. `ends` is what
    ends before, the last one last: after that there is room. `made_seconds` is when it was made, from facts of then.
    """

    start_seconds: float | None = None
    earliest_seconds: float = 0.0
    latest_seconds: float = 0.0
    basis: EstimateBasis = EstimateBasis.UNKNOWN
    ends: tuple[ExpectedEnd, ...] = ()
    why: str = ""
    made_seconds: float = 0.0


_MARK = "; expected to start about "
_FINE_SECONDS, _COARSE_SECONDS = 60.0, 300.0
_DAY = 86_400


def with_estimate(message: str, words: str | None) -> str:
    """A condition's message with what is known of the start; None and empty words add nothing."""
    return message + words if words else message


def without_estimate(message: str) -> str:
    """The message before such words were added."""
    return message.partition(_MARK)[0]


def estimate_words(estimate: StartEstimate) -> str:
    """Empty where the start is not known."""
    if estimate.start_seconds is None:
        return ""
    return f"{_MARK}{when_text(estimate)}{basis_text(estimate)}"


def seen_from(estimate: StartEstimate, namespace: str) -> StartEstimate:
    """What readers of one namespace are told: names of others' work, and whose past runs tell its end, are left out."""
    ends = tuple(end if _is_of(end, namespace) else _nameless(end) for end in estimate.ends)
    return msgspec.structs.replace(estimate, ends=ends)


def _is_of(end: ExpectedEnd, namespace: str) -> bool:
    """Names are `gang/NAMESPACE/NAME`, or `pod/…`."""
    return end.name.partition("/")[2].startswith(f"{namespace}/")


def _nameless(end: ExpectedEnd) -> ExpectedEnd:
    return msgspec.structs.replace(end, name="work of another namespace", of="such work")


def when_text(estimate: StartEstimate) -> str:
    """The start to a minute, or to five where it is far away."""
    start = estimate.start_seconds or 0.0
    grain = _FINE_SECONDS if start - estimate.made_seconds < 1800.0 else _COARSE_SECONDS
    return time_text(round(start / grain) * grain)


def basis_text(estimate: StartEstimate) -> str:
    """On what it rests: `, after job X ends (its deadline)`."""
    if estimate.basis is EstimateBasis.ROOM:
        return ", as there is room"
    if not estimate.ends:
        return ""
    last, number = estimate.ends[-1], len(estimate.ends)
    if number > 1 and estimate.basis is EstimateBasis.HISTORY:
        return f", after {number} jobs end, {last.name} among them ({told_by(last)})"
    return f", after {last.name} ends ({told_by(last)})"


def told_by(end: ExpectedEnd) -> str:
    """What tells when it ends."""
    if end.basis is EstimateBasis.DEADLINE:
        return "by its deadline"
    return f"by {end.runs} past runs of {end.of}"


def time_text(seconds: float) -> str:
    """`2026-11-28 14:05 UTC`."""
    days, rest = divmod(int(seconds), _DAY)
    year, month, day = _civil(days)
    return f"{year:04}-{month:02}-{day:02} {rest // 3600:02}:{rest % 3600 // 60:02} UTC"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970, as Howard Hinnant's days algorithm has it."""
    days += 719_468
    era, of_era = divmod(days, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1

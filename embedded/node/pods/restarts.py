"""Whether and when a finished container starts again.

Source: kubernetes pkg/kubelet/container/helpers.go and client-go util/flowcontrol/backoff.go: the first restart is
immediate, then base, 2·base, … up to 30·base; a run of 60·base (10 minutes with the default) starts afresh.
"""

from __future__ import annotations

_LONGEST_IN_BASES = 30


def restarts(policy: str | None, exit_code: int) -> bool:
    """True when the pod's restartPolicy wants the container again after `exit_code`."""
    return policy in (None, "", "Always") or (policy == "OnFailure" and exit_code != 0)


def delay_seconds(quick_ends: int, base_seconds: float) -> float:
    """Seconds to wait before the next start after `quick_ends` ends in a row (1 for the first)."""
    if quick_ends <= 1:
        return 0.0
    return float(min(base_seconds * 2 ** min(quick_ends - 2, 10), base_seconds * _LONGEST_IN_BASES))


def quick_ends(before: int, ran_seconds: float, base_seconds: float) -> int:
    """The count of ends in a row after one more run of `ran_seconds`."""
    return 1 if ran_seconds > 2 * _LONGEST_IN_BASES * base_seconds else before + 1

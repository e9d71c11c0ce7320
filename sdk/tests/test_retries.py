"""Retries: bounded, with a pause that doubles; what no attempt mends is told at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sdk_cases import Pauses

from sublet_sdk.faults import StorageFault
from sublet_sdk.retries import Retries


def failing(times: int, fault: Exception) -> Callable[[], str]:
    left = [fault] * times

    def action() -> str:
        if left:
            raise left.pop()
        return "done"

    return action


def test_a_failure_that_passes() -> None:
    pauses = Pauses()
    assert Retries(5, 0.5, 1.5, pauses).call("write x", failing(4, OSError("reset"))) == "done"
    assert pauses.seconds == [0.5, 1.0, 1.5, 1.5]


def test_a_failure_that_stays_is_reported_with_its_cause() -> None:
    pauses = Pauses()
    with pytest.raises(StorageFault, match=r"write x: OSError: reset \(attempt 3 of 3\)") as raised:
        Retries(3, sleep=pauses).call("write x", failing(9, OSError("reset")))
    assert isinstance(raised.value.__cause__, OSError) and len(pauses.seconds) == 2


def test_what_no_attempt_mends() -> None:
    pauses = Pauses()
    with pytest.raises(StorageFault, match="attempt 1 of 5"):
        Retries(sleep=pauses).call("write x", failing(1, PermissionError("denied")))
    with pytest.raises(FileNotFoundError):
        Retries(sleep=pauses).call("read x", failing(1, FileNotFoundError("x")))
    assert pauses.seconds == []

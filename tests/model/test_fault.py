"""Whose fault it is, where several tasks end together."""

from __future__ import annotations

import pytest

from model.fault import ConfigurationFault, Fault, PeerFault, fault_in

FIRST, SECOND = ConfigurationFault("file", "is wrong"), PeerFault("peer", "is gone")
BUG = KeyError("bug")

CASES: dict[str, tuple[BaseExceptionGroup[BaseException], Fault | None]] = {
    "one": (ExceptionGroup("", [FIRST]), FIRST),
    "the first of several": (ExceptionGroup("", [FIRST, SECOND]), FIRST),
    "in a group of a group": (ExceptionGroup("", [ExceptionGroup("", [SECOND]), FIRST]), SECOND),
    "a bug": (ExceptionGroup("", [BUG]), None),
    "a bug beside a fault": (ExceptionGroup("", [FIRST, BUG]), None),
    "a bug below a fault": (ExceptionGroup("", [FIRST, ExceptionGroup("", [BUG])]), None),
    "an end that was asked for": (BaseExceptionGroup("", [FIRST, KeyboardInterrupt()]), None),
}


@pytest.mark.parametrize(("group", "fault"), CASES.values(), ids=CASES)
def test_a_group_is_a_fault_where_nothing_else_is_in_it(
    group: BaseExceptionGroup[BaseException], fault: Fault | None
) -> None:
    assert fault_in(group) is fault


def test_a_fault_is_one_line() -> None:
    """Whatever the texts that it was made of."""
    assert str(ConfigurationFault("a\nfile", "is  wrong", "mend\n it")) == "a file: is wrong (mend it)"

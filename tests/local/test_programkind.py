"""Programs of `sublet up` by their names."""

from __future__ import annotations

import pytest

from local.programkind import ProgramKind


@pytest.mark.parametrize(
    ("name", "kind"),
    [("agent", ProgramKind.AGENT), ("agent-2", ProgramKind.AGENT), ("node-12", ProgramKind.NODE), ("proxy", "proxy")],
)
def test_kind(name: str, kind: ProgramKind) -> None:
    """Whatever number follows."""
    assert ProgramKind.of(name) is ProgramKind(kind)


def test_a_name_that_no_program_has() -> None:
    """It is a defect of ours, and not another program."""
    with pytest.raises(ValueError):
        ProgramKind.of("agents")

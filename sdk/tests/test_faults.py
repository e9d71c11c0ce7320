"""Faults: one sentence that names what is wrong and what to give; all are of one class."""

from __future__ import annotations

import pytest

from sublet_sdk import faults
from sublet_sdk.faults import CheckpointFault, SettingFault


def test_a_setting_is_named_with_its_fix() -> None:
    assert str(SettingFault("most", "is -1", "give 0 or more")) == "most: is -1; give 0 or more"


@pytest.mark.parametrize("name", ["SettingFault", "StorageFault", "CorruptCheckpoint", "NoCheckpoint"])
def test_a_program_catches_one_class(name: str) -> None:
    assert issubclass(getattr(faults, name), CheckpointFault)

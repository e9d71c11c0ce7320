"""What a container may have follows from its add and drop as containerd has it."""

from __future__ import annotations

import pytest

from embedded.node.images.capabilities import DEFAULT, NAMES, granted, mask


def test_bits() -> None:
    """The kernel's numbers: the first, one in the middle and the last (linux/capability.h)."""
    assert [mask([name]) for name in ("CHOWN", "KILL", "SYS_RESOURCE", "CHECKPOINT_RESTORE")] == [
        1,
        32,
        1 << 24,
        1 << 40,
    ]
    assert len(set(NAMES)) == 41


@pytest.mark.parametrize(
    ("add", "drop", "privileged", "expected"),
    [
        pytest.param([], [], False, mask(DEFAULT), id="nothing said"),
        pytest.param([], ["ALL"], False, 0, id="none"),
        pytest.param(["KILL"], ["ALL"], False, mask(["KILL"]), id="one"),
        pytest.param(["CAP_KILL", "sys_admin"], ["ALL"], False, mask(["KILL", "SYS_ADMIN"]), id="other spellings"),
        pytest.param([], ["KILL"], False, mask(set(DEFAULT) - {"KILL"}), id="one less"),
        pytest.param(["ALL"], [], False, mask(NAMES), id="all"),
        pytest.param(["ALL"], ["KILL"], False, mask(set(NAMES) - {"KILL"}), id="all but one"),
        pytest.param(["KILL"], ["KILL"], False, mask(set(DEFAULT) - {"KILL"}), id="dropped after added"),
        pytest.param(["NONESUCH"], ["ALL"], False, 0, id="unknown"),
        pytest.param([], ["ALL"], True, mask(NAMES), id="privileged"),
    ],
)
def test_granted(add: list[str], drop: list[str], privileged: bool, expected: int) -> None:
    """A bit for each."""
    assert granted(add, drop, privileged=privileged) == expected

"""One agent a node, whatever its state file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.edge.nodelock import NodeLock
from model.fault import ConfigurationFault, KernelFault


def test_a_second_agent_refuses(tmp_path: Path) -> None:
    """Until the first is gone; another best-effort root is another matter."""
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    first = NodeLock(tmp_path / "one")
    NodeLock(tmp_path / "other").close()
    with pytest.raises(ConfigurationFault, match=r"/one: another agent limits these cgroups \(stop it first\)"):
        NodeLock(tmp_path / "one")
    first.close()
    NodeLock(tmp_path / "one").close()


def test_a_root_that_does_not_exist(tmp_path: Path) -> None:
    """One line that names it."""
    with pytest.raises(KernelFault, match=r"/none: cannot be opened: No such file"):
        NodeLock(tmp_path / "none")

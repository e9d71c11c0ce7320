"""Commands that need the embedded cluster say so where it is not installed, and its faults are one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.faults import faults, missing_part
from embedded.fault import ConfigurationFault as EmbeddedFault
from model.fault import ConfigurationFault

ROOT = Path(__file__).parent.parent.parent
WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("local", "embedded"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """As in an installation without the embedded cluster."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("command", [["up"], ["demo"]], ids=["up", "demo"])
def test_a_command_without_its_part(command: list[str]) -> None:
    """One sentence that says what to install, and no traceback."""
    done = run(*command)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == (
        "error: this command needs the embedded cluster, which is not installed here: pip install 'sublet[local]'\n"
    )


def test_a_cluster_is_named_where_none_is_embedded(tmp_path: Path) -> None:
    """What looks for the cluster of `sublet up` finds none."""
    done = run("explain", "node", "--dir", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == (
        f"error: {tmp_path}: no embedded cluster runs here (it is not installed here: name a cluster or an address)\n"
    )


def test_any_other_missing_module_is_a_bug() -> None:
    """And shows as one."""
    assert missing_part(ModuleNotFoundError("x", name="locale")) == ""
    assert missing_part(ModuleNotFoundError("x", name="local.up")) != ""


@pytest.mark.parametrize("fault", [ConfigurationFault("a", "b", "c"), EmbeddedFault("a", "b", "c")])
def test_faults_of_both(fault: Exception) -> None:
    """They read the same."""
    assert isinstance(fault, faults()) and str(fault) == "a: b (c)"

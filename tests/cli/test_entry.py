"""The installed command: the agent on every node pays for nothing but the agent."""

from __future__ import annotations

import subprocess
import sys

import pytest

RUN = """
import sys
sys.argv = ["sublet", *{arguments!r}]
from cli.entry import run
try:
    run()
except SystemExit as ended:
    print("loaded", *sorted(set({modules!r}) & set(sys.modules)), "code", ended.code)
"""


def entered(arguments: list[str], *modules: str) -> str:
    """What `sublet ARGUMENTS` printed; the last line says which of the modules it loaded, and its exit code."""
    code = RUN.format(arguments=arguments, modules=modules)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout


def test_the_agent_starts_without_the_command_line() -> None:
    """Memory on every node of a fleet; and the other programs' parts are not on its image."""
    out = entered(["agent", "--help"], "typer", "click", "cli.main", "numpy", "matplotlib", "scheduler", "local")
    assert "--kubeconfig" in out
    assert out.splitlines()[-1] == "loaded code 0"


@pytest.mark.parametrize(
    ("arguments", "expected"), [(["--version"], "sublet "), (["simulate", "--help"], "node"), (["--help"], "replay")]
)
def test_every_other_verb_goes_to_the_command_line(arguments: list[str], expected: str) -> None:
    """With its own exit code."""
    out = entered(arguments, "cli.main")
    assert expected in out
    assert out.splitlines()[-1] == "loaded cli.main code 0"

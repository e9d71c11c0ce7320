"""`sublet submit` on a command line: what is wrong with one is a line, and what follows `--` is the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.main import main

WRONG = {
    "nothing to submit": ([], "submit: takes one of FILE, -- COMMAND and --follow NAME"),
    "two things": (["f.yaml", "--", "true"], "submit: takes one of FILE, -- COMMAND and --follow NAME"),
    "no cluster": (["--dir", "{tmp}", "--", "python", "x", "--dir", "y"], "no embedded cluster runs here"),
    "no such file": (["missing.yaml", "--kubeconfig", "{tmp}/k"], "missing.yaml: cannot be read"),
    "no variable": (["--env", "SEED", "--kubeconfig", "{tmp}/k", "--", "true"], "--env SEED: is not NAME=VALUE"),
    "a count that is none": (["--replicas", "0", "--", "true"], "for '--replicas'"),
    "no kubeconfig": (["--kubeconfig", "{tmp}/k", "--", "true"], "k: no such file (give --kubeconfig FILE)"),
}


@pytest.mark.parametrize(("arguments", "expected"), WRONG.values(), ids=WRONG)
def test_a_command_line_that_is_wrong(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line with what to do; exit code 2."""
    assert main(["submit", *(each.format(tmp=tmp_path) for each in arguments)]) == 2
    seen = capsys.readouterr()
    assert expected in seen.err and seen.err.count("\n") == 1 and seen.out == ""

"""The start of a process in a container, as far as that needs no container."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from embedded.node.processes.spawning import sealed_interpreter


def test_what_enters_a_container_is_a_copy_that_cannot_be_written(tmp_path: Path) -> None:
    """An image's script of /proc/self/exe is run by whoever executes it, and has that in its hands."""
    script = tmp_path / "script"
    script.write_text("#!/proc/self/exe\nimport os; print(os.readlink('/proc/self/exe'))\n")
    script.chmod(0o755)
    become = f"import os; os.execv({str(script)!r}, ['script'])"
    shown = subprocess.check_output([sys.executable, "-I", "-S", "-c", become], executable=sealed_interpreter())
    assert shown.decode().startswith("/memfd:interpreter")
    with pytest.raises(PermissionError), Path(sealed_interpreter()).open("r+b", buffering=0) as file:
        file.write(b"#!/bin/sh")


def test_it_is_the_same_interpreter() -> None:
    shown = "import sys; print(sys.version, sys.prefix, sys.executable)"
    command = [sys.executable, "-I", "-S", "-c", shown]
    kinds = [subprocess.check_output(command, executable=each) for each in (None, sealed_interpreter())]
    assert kinds[0] == kinds[1]

"""The command line: failures are one line on stderr with exit code 2, and both names are the same program."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points, version
from pathlib import Path

import pytest

from cli.main import main


@pytest.mark.parametrize(
    ("case", "arguments", "expected"),
    [
        ("an unknown verb", ["exlpain"], "No such command"),
        ("where verbs are told", ["exlpain"], "(see `sublet --help`)"),
        ("an unknown option", ["up", "--no-such"], "No such option"),
        ("an unknown option's verb", ["up", "--no-such"], "(see `sublet up --help`)"),
        ("a bad value's verb", ["top", "--sort", "x"], "(see `sublet top --help`)"),
        ("a verb below a verb", ["explain", "pod"], "(see `sublet explain pod --help`)"),
        ("a missing argument", ["explain", "pod"], "Missing argument"),
        ("not one of the choices", ["top", "nods"], "for 'view': 'nods' is not one of 'nodes'"),
        ("a value out of range", ["demo", "--phase-seconds", "1"], "phase-seconds"),
        ("nothing runs", ["explain", "node", "--dir", "{tmp}"], "no embedded cluster runs here"),
        ("nobody answers", ["explain", "node", "--agent", "127.0.0.1:1"], "agent at 127.0.0.1:1: does not answer"),
        ("no address", ["explain", "node", "--agent", "bogus"], "--agent bogus: is not HOST:PORT"),
        ("no port", ["explain", "limit", "--agent", "host:http"], "--agent host:http: is not HOST:PORT"),
        ("no socket there", ["explain", "pod", "x", "--scheduler", "unix:x"], "--scheduler unix:x: is not HOST:PORT"),
        ("a path, not a pod", ["explain", "pod", "a/b/c"], "pod a/b/c: is not the name of a pod"),
        ("a pod without a name", ["explain", "pod", "a/"], "pod a/: is not the name of a pod"),
        ("no scheduler", ["explain", "pod", "x", "--scheduler", "127.0.0.1:1"], "scheduler at 127.0.0.1:1"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_2(
    case: str, arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback, nothing on stdout."""
    assert main([argument.format(tmp=tmp_path) for argument in arguments]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.startswith("error: ") and seen.err.count("\n") == 1
    assert expected in seen.err


@pytest.mark.parametrize("arguments", [[], ["explain"], ["simulate"]], ids=" ".join)
def test_without_arguments_the_help_is_shown(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """In its lines, on stderr, as `--help` has it; exit code 2, since nothing was done."""
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert main([*arguments, "--help"]) == 0
    assert (shown.out, shown.err.strip()) == ("", capsys.readouterr().out.strip())


@pytest.mark.parametrize("verb", ["up", "demo"])
def test_without_root_there_is_no_real_kernel(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever insists on it is told in one line what is needed; no directory is left."""
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    directory = tmp_path / "run"
    assert main([verb, "--kernel", "real", *(["--dir", str(directory)] if verb == "up" else [])]) == 2
    seen = capsys.readouterr()
    assert seen.out == "" and seen.err.count("\n") == 1
    assert seen.err.startswith(f"error: sublet {verb}: needs root and writable cgroups (")
    assert not directory.exists()


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The installed version, exit code 0."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"sublet {version('sublet')}\n"


def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    """A person finds all of them at once."""
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in ("up", "demo", "agent", "scheduler", "explain", "simulate", "record", "replay"))


def test_the_kubectl_plugin_is_the_same_program() -> None:
    """`kubectl sublet …` finds kubectl-sublet."""
    scripts = {entry.name: entry.value for entry in entry_points(group="console_scripts")}
    assert scripts["sublet"] == scripts["kubectl-sublet"] == "cli.entry:run"


def test_kubectl_finds_the_plugin() -> None:
    """`kubectl sublet --version` answers as `sublet --version` does."""
    scripts = Path(sys.executable).parent
    path = f"{scripts}:{os.environ['PATH']}"
    kubectl = shutil.which("kubectl", path=path)
    if kubectl is None or not (scripts / "kubectl-sublet").exists():
        pytest.skip("needs kubectl and an installed kubectl-sublet: make test installs both")
    done = subprocess.run(
        [kubectl, "sublet", "--version"], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"sublet {version('sublet')}\n"


@pytest.mark.parametrize("program", ["agent", "scheduler"])
def test_a_programs_own_arguments_pass_through(program: str) -> None:
    """`--help` after the verb is the program's, with its own options."""
    done = subprocess.run([sys.executable, "-m", "cli", program, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "--kubeconfig" in done.stdout


@pytest.mark.parametrize(
    "heavy", ["numpy", "cryptography", "grpc", "kubernetes", "aiohttp", "matplotlib", "psutil", "structlog"]
)
def test_the_command_line_itself_loads_nothing_heavy(heavy: str) -> None:
    """An agent's image has neither numpy nor cryptography, and `sublet --help` answers at once."""
    code = f"import sys, cli.main; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0

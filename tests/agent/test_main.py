"""The agent's command line: defaults a person can read, and one line for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.__main__ import main


@pytest.mark.parametrize(
    ("option", "default"),
    [
        ("--cgroup-root", "/sys/fs/cgroup"),
        ("--proc", "/proc"),
        ("--sys", "/sys"),
        ("--cpu-manager-state", "/var/lib/kubelet/cpu_manager_state"),
        ("--state-file", "/var/lib/sublet/agent.json"),
        ("--socket", "/run/sublet/agent.sock"),
        ("--grpc-listen", "127.0.0.1:10317"),
        ("--http-listen", "127.0.0.1:10316"),
        ("--journal-max-mib", "256"),
        ("--log-format", "json"),
        ("--heartbeat", "agent.heartbeat beside the socket"),
        ("--guard-share", "20"),
        ("--guard-silence", "60.0"),
    ],
)
def test_help_says_defaults(option: str, default: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the option that has one."""
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    _, _, options = capsys.readouterr().out.partition("options:")
    _, _, told = " ".join(options.split()).partition(f"{option} ")
    assert f"(default: {default})" in told.partition(" --")[0]


@pytest.mark.parametrize("size", ["0", "-1"])
def test_a_journal_without_room_is_refused(size: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each tick would start it again; nothing is begun."""
    arguments = ["--node-name", "n", "--journal", str(tmp_path / "j"), "--journal-max-mib", size]
    assert main([*arguments, "--cgroup-root", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"error: --journal-max-mib {size}: is below 1 (give a size in MiB)\n"
    assert not (tmp_path / "j").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--guard-share", "0"], "--guard-share 0: is no share (give 1 to 100 percent)"),
        (["--guard-share", "101"], "--guard-share 101: is no share (give 1 to 100 percent)"),
        (["--guard-silence", "1"], "--guard-silence 1: is too short (give 5 seconds or more"),
        (["--guard-silence", "nan"], "--guard-silence nan: is too short (give 5 seconds or more"),
    ],
)
def test_a_guard_that_makes_no_sense_is_refused(
    arguments: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read."""
    assert main(["--guard", *arguments, "--cgroup-root", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith(f"error: {told}")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--tls-cert", "c"], "--tls-cert and --tls-key go together"),
        (["--scheduler", "h:1"], "--scheduler needs --scheduler-ca and --token-file"),
    ],
)
def test_half_of_what_tls_needs_is_refused(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the usage, before anything is begun."""
    with pytest.raises(SystemExit) as ended:
        main(["--node-name", "n", *flags])
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_guard_or_restore(capsys: pytest.CaptureFixture[str]) -> None:
    """One or the other, or the agent itself."""
    with pytest.raises(SystemExit) as ended:
        main(["--guard", "--restore"])
    assert ended.value.code == 2 and "not allowed with argument" in capsys.readouterr().err


def test_diagnostics_for_everybody_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is limited, though nothing is served until then."""
    arguments = ["--node-name", "n", "--grpc-listen", "0.0.0.0:1", "--state-file", str(tmp_path / "agent.json")]
    assert main(arguments) == 2
    assert "--grpc-listen 0.0.0.0:1: is not a loopback address" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())

"""The command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from model.fault import ConfigurationFault
from scheduler import settings
from scheduler.__main__ import main, parse


def test_defaults() -> None:
    """Ports 10318 to 10320; only the link listens beyond this machine."""
    options, style = parse(["--tls-cert", "c", "--tls-key", "k", "--token-file", "t"])
    assert (options.link_listen, options.grpc_listen, options.http_listen) == (
        "0.0.0.0:10318",
        "127.0.0.1:10319",
        "127.0.0.1:10320",
    )
    assert (options.kubeconfig, style.value) == (None, "json")


def test_help_says_defaults_and_where_settings_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """A page people have, not a source file."""
    with pytest.raises(SystemExit):
        parse(["--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "docs/settings.md" in told and "(default: 0.0.0.0:10318)" in told and "(default: json)" in told


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_settings_file_is_the_defaults(text: str, tmp_path: Path) -> None:
    """Somebody keeps one for later."""
    (tmp_path / "settings").write_text(text)
    assert settings.load(tmp_path / "settings") == settings.SchedulerSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [("backoff: {first_seconds: 2}\n", ""), ('{"workloads_per_cycle": 9}', ""), ("nonsense: 1\n", "nonsense")],
)
def test_settings_file(tmp_path: Path, text: str, told: str) -> None:
    """YAML or JSON; an unknown field is named."""
    path = tmp_path / "settings"
    path.write_text(text)
    if told:
        with pytest.raises(ConfigurationFault, match=told):
            settings.load(path)
    else:
        assert settings.load(path) != settings.SchedulerSettings()


def test_a_fault_is_one_line(tmp_path: Path, certificate: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A missing file costs one line and exit code 2."""
    files = ["--tls-cert", str(certificate.certificate), "--tls-key", str(certificate.key)]
    assert main([*files, "--token-file", str(tmp_path / "absent")]) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'absent'}: cannot be read: No such file or directory (give a readable file)\n"
    )
    (tmp_path / "tokens").write_text("t,agent\n")
    ports = ["--http-listen", "127.0.0.1:0"]
    missing = ["--kubeconfig", str(tmp_path / "absent"), "--token-file", str(tmp_path / "tokens")]
    assert main([*files, *ports, *missing]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'absent'}: no such file (give --kubeconfig FILE)\n"


def test_a_standby_says_at_once_what_it_could_not_lead_with(
    tmp_path: Path, certificate: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Junk for a certificate and a ready file in no folder are told before anybody waits for a lease."""
    (tmp_path / "tokens").write_text("t,agent\n")
    (tmp_path / "junk").write_text("junk")
    common = ["--token-file", str(tmp_path / "tokens"), "--http-listen", "127.0.0.1:0", "--kubeconfig", str(tmp_path)]
    good = ["--tls-cert", str(certificate.certificate), "--tls-key", str(certificate.key)]
    junk = ["--tls-cert", str(tmp_path / "junk"), "--tls-key", str(certificate.key)]
    for arguments, told in (
        (junk, "no usable certificate and key"),
        ([*good, "--ready-file", "/no/such/x"], "--ready-file"),
    ):
        assert main([*common, *arguments]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([], "one of the arguments --token-review --token-file is required"),
        (["--token-review", "--token-file", "t"], "not allowed with argument"),
    ],
)
def test_who_may_call_is_said_in_one_way(flags: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By the API server, or by a file."""
    with pytest.raises(SystemExit) as ended:
        parse(["--tls-cert", "c", "--tls-key", "k", *flags])
    assert ended.value.code == 2 and told in capsys.readouterr().err


def test_the_link_process_is_told_who_is_an_agent() -> None:
    """With review: the cluster, the audience and the account; a file is enough without."""
    tls = ["--tls-cert", "c", "--tls-key", "k"]
    reviewed, _ = parse([*tls, "--token-review", "--kubeconfig", "kc", "--agent-account", "ns:name"])
    serving = reviewed.serving
    assert (serving.tokens, serving.kubeconfig) == ("", "kc")
    assert (serving.audience, serving.agent) == ("sublet-scheduler", "ns:name")
    assert parse([*tls, "--token-file", "t"])[0].serving.tokens == "t"

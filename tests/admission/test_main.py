"""The command line: what it makes of flags, and one line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from admission.__main__ import main, parse
from admission.settings import AdmissionSettings, load
from kube.logs import LogFormat
from kube.tls import TlsFiles
from model.fault import ConfigurationFault


def test_defaults() -> None:
    """Own certificates, all interfaces for the API server, loopback for probes."""
    options, style = parse(["--identity", "me"])
    assert (options.tls, options.listen, options.http_listen) == (None, "0.0.0.0:10321", "127.0.0.1:10322")
    assert (options.namespace, options.identity, style) == ("sublet-system", "me", LogFormat.JSON)


def test_files() -> None:
    """Somebody else's certificates."""
    options, _ = parse(["--certificates", "files", "--tls-cert", "c", "--tls-key", "k"])
    assert options.tls == TlsFiles(Path("c"), Path("k"))


WRONG = {
    "files without files": (["--certificates", "files"], "give --tls-cert FILE and --tls-key FILE"),
    "own with files": (["--tls-cert", "c"], "belong to --certificates files"),
    "no settings": (["--settings", "/nowhere"], "/nowhere: cannot be read"),
    "no cluster": (["--kubeconfig", "/nowhere"], "/nowhere: no such file"),
    "no folder": (["--ready-file", "/nowhere/x"], "its folder does not exist"),
    "no certificate": (["--certificates", "files", "--tls-cert", "/c", "--tls-key", "/k"], "no usable certificate"),
}


@pytest.mark.parametrize(("flags", "words"), WRONG.values(), ids=WRONG)
def test_one_line_for_what_somebody_can_mend(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, on standard error."""
    assert main(flags) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and words in line


def test_settings(tmp_path: Path) -> None:
    """A file, an empty one, and one with a word that nobody knows."""
    path = tmp_path / "s.yaml"
    path.write_text("")
    assert load(path) == load(None) == AdmissionSettings()
    path.write_text("pods: {excluded_namespaces: [a]}\ncertificates: {server_days: 7}")
    assert (load(path).pods.excluded_namespaces, load(path).certificates.server_days) == (("a",), 7.0)
    path.write_text("mutations: {}")
    with pytest.raises(ConfigurationFault, match="mutations"):
        load(path)

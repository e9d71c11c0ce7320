"""Settings are taken whole or not at all, and the error names the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.settings import AgentSettings, PodOrigin, load_settings, require_loopback
from model.fault import ConfigurationFault


def test_defaults_and_overrides(tmp_path: Path) -> None:
    """YAML and JSON alike; what is not named keeps its default."""
    file = tmp_path / "s.yaml"
    file.write_text("tick_seconds: 2\nsuppress:\n  threshold_pct: 65\n")
    found = load_settings(file)
    assert (found.tick_seconds, found.suppress.threshold_pct, found.suppress.policy) == (2.0, 65, "adaptive")
    assert load_settings(None) == AgentSettings()


@pytest.mark.parametrize("text", ["", "# nothing yet\n"])
def test_an_empty_file_is_the_defaults(text: str, tmp_path: Path) -> None:
    """Somebody keeps one for later."""
    (tmp_path / "s.yaml").write_text(text)
    assert load_settings(tmp_path / "s.yaml") == AgentSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tick: 1\n", "unknown field `tick`"),
        ("tick_seconds: fast\n", "Expected `float`, got `str` - at `$.tick_seconds`"),
        ("tick_seconds: 0.01\n", "Expected `float` >= 0.5 - at `$.tick_seconds`"),
        ("a: [\n", "s.yaml"),
        ("- tick_seconds\n", "Expected `object | null`, got `array`"),
        ("colocation: {cpu_reclaim_treshold_pct: 20}\n", "unknown field `cpu_reclaim_treshold_pct`"),
        ("suppress: {threshold_pct: 500}\n", "Expected `int` <= 100 - at `$.suppress.threshold_pct`"),
        ("colocation: {aggregate_seconds: 0}\n", "Expected `float` >= 10.0 - at `$.colocation.aggregate_seconds`"),
        ("colocation: {live_window_seconds: 400}\n", "must not exceed aggregate_seconds - at `$.colocation`"),
        ("prediction: {safety_margin_pct: 101}\n", "Expected `int` <= 100 - at `$.prediction.safety_margin_pct`"),
        ("config_map: no-slash\n", "matching regex '^[a-z0-9.-]+/[a-z0-9.-]+$' - at `$.config_map`"),
        ("pods: {source: nobody}\n", "Invalid enum value 'nobody' - at `$.pods.source`"),
        ("pods: {source: kubelet}\n", "ca_file must be set for source kubelet, or insecure_skip_verify - at `$.pods`"),
        ("pods: {ca_file: /ca, insecure_skip_verify: true}\n", "must not be set together with ca_file - at `$.pods`"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, told: str) -> None:
    """One line with file and field."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationFault) as error:
        load_settings(file)
    assert told in str(error.value) and "\n" not in str(error.value).strip()


def test_every_part_can_be_set(tmp_path: Path) -> None:
    """The parts that the cluster's documents override, and those that are the agent's alone."""
    file = tmp_path / "s.json"
    file.write_text(
        '{"normalization": {"enable": true, "models": {"Xeon": {"base": 1.5}}}, "prediction": {"safety_margin_pct": 20},'
        ' "pods": {"source": "kubelet", "ca_file": "/ca"}, "colocation": {"aggregate_durations_seconds": [60]}}'
    )
    found = load_settings(file)
    assert found.normalization.models["Xeon"].base == 1.5 and found.prediction.safety_margin_pct == 20
    assert (found.pods.source, found.pods.ca_file) == (PodOrigin.KUBELET, "/ca")
    assert found.colocation.aggregate_durations_seconds == (60.0,)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), ("localhost:65535", ("localhost", 65535)), ("[::1]:80", ("::1", 80))],
)
def test_loopback(address: str, expected: tuple[str, int]) -> None:
    """Host and port apart, an IPv6 address without its brackets."""
    assert require_loopback("--x", address) == expected


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.0.0.1:65536", "127.0.0.1", ":", ""])
def test_not_loopback(address: str) -> None:
    """One line with flag and address."""
    with pytest.raises(ConfigurationFault, match=r"^--x "):
        require_loopback("--x", address)


def test_a_missing_file(tmp_path: Path) -> None:
    """The path and the cause."""
    with pytest.raises(ConfigurationFault, match="No such file"):
        load_settings(tmp_path / "none.yaml")


def test_a_policy_nobody_has_is_refused(tmp_path: Path) -> None:
    """As a NodeSLO's is: a misspelt policy must not look like a chosen one."""
    file = tmp_path / "s.yaml"
    file.write_text("suppress: {policy: cfsQouta}\n")
    with pytest.raises(ConfigurationFault, match=r"suppress\.policy"):
        load_settings(file)

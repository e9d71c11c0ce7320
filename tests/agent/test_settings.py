"""Settings are taken whole or not at all, and the error names the field."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.settings import AgentSettings, load_settings
from model.fault import ConfigurationFault


def test_defaults_and_overrides(tmp_path: Path) -> None:
    """YAML and JSON alike; what is not named keeps its default."""
    file = tmp_path / "s.yaml"
    file.write_text("tick_seconds: 2\nsuppress:\n  threshold_pct: 65\n")
    found = load_settings(file)
    assert (found.tick_seconds, found.suppress.threshold_pct, found.suppress.policy) == (2.0, 65, "adaptive")
    assert load_settings(None) == AgentSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tick: 1\n", "unknown field `tick`"),
        ("tick_seconds: fast\n", "Expected `float`, got `str` - at `$.tick_seconds`"),
        ("tick_seconds: 0.01\n", "tick_seconds must be between 0.5 and 3"),
        ("a: [\n", "s.yaml"),
        ("colocation: {cpu_reclaim_treshold_pct: 20}\n", "unknown field `cpu_reclaim_treshold_pct`"),
        ("suppress: {threshold_pct: 500}\n", "threshold_pct must be between 0 and 100 - at `$.suppress`"),
        ("colocation: {aggregate_seconds: 0}\n", "aggregate_seconds must be between 10 and 3600"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, told: str) -> None:
    """One line with file and field."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationFault) as error:
        load_settings(file)
    assert told in str(error.value) and "\n" not in str(error.value).strip()


def test_a_missing_file(tmp_path: Path) -> None:
    """The path and the cause."""
    with pytest.raises(ConfigurationFault, match="No such file"):
        load_settings(tmp_path / "none.yaml")

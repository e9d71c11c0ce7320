"""The scheduler's settings: names that are served, what is plain, and a name that is kube-scheduler's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from model.fault import ConfigurationFault
from model.workload import MatchPolicy
from scheduler.settings import SchedulerSettings, load


def read(text: str) -> SchedulerSettings:
    return msgspec.json.decode(text, type=SchedulerSettings)


def test_names_of_profiles_are_served_once() -> None:
    """After those that are listed."""
    found = read('{"scheduler_names": ["a", "b"], "profiles": [{"names": ["b", "c"]}]}')
    assert found.served == ("a", "b", "c")


def test_plain_names() -> None:
    """Of profiles that say so."""
    found = read('{"scheduler_names": ["a"], "profiles": [{"names": ["x"], "plain": true}, {"names": ["y"]}]}')
    assert found.plain == {"x"}


def test_kube_schedulers_name_needs_a_plain_profile() -> None:
    """Otherwise pods that name no scheduler would be placed as batch work."""
    with pytest.raises(msgspec.ValidationError, match="default-scheduler is kube-scheduler's; take it out"):
        read('{"scheduler_names": ["default-scheduler"], "profiles": []}')
    named = '{"scheduler_names": ["default-scheduler"], "profiles": [{"names": ["default-scheduler"], "plain": true}]}'
    assert read(named).plain == {"default-scheduler"}


def test_what_gangs_get_that_do_not_say() -> None:
    """And room for Events."""
    found = read('{"gang_timeout_seconds": 30, "gang_match_policy": "only-waiting", "waiting_events": 7}')
    assert (found.gangs.timeout_seconds, found.gangs.match) == (30.0, MatchPolicy.ONLY_WAITING)
    assert found.events.waiting == 7


def test_a_file(tmp_path: Path) -> None:
    """YAML; without one the defaults; a wrong field is named."""
    file = tmp_path / "settings.yaml"
    file.write_text("debounce_seconds: 2\n")
    assert load(file).debounce_seconds == 2.0
    assert load(None) == SchedulerSettings()
    file.write_text("debounce_seconds: 200\n")
    with pytest.raises(ConfigurationFault, match="debounce_seconds"):
        load(file)
    file.write_text("debounce: 2\n")
    with pytest.raises(ConfigurationFault, match="debounce"):
        load(file)

"""Settings of a simulated scheduler: those given, and what koord-scheduler-config says in their place."""

from __future__ import annotations

import pytest

from cli.simulate.cluster_settings import configured
from model.fault import ConfigurationFault
from scheduler.settings import SchedulerSettings
from tests.cli.simulate.clusters import Object, given, other

COSCHEDULING = """
kind: KubeSchedulerConfiguration
profiles: [{pluginConfig: [{name: Coscheduling, args: {defaultTimeout: 77s, ARGUMENT}}]}]
"""


def config(text: str, name: str = "koord-scheduler-config") -> Object:
    return other("ConfigMap", "v1", name, data={"koord-scheduler-config": text})


def test_nothing_is_on_its_way() -> None:
    """What is missing now is missing; everything else is as it was given."""
    found, unserved = configured(SchedulerSettings(), given())
    assert (found.hold_grace_seconds, unserved) == (0.0, ())
    assert found.gangs == SchedulerSettings().gangs


def test_the_config_map_stands_in_place_of_a_setting() -> None:
    """Another ConfigMap says nothing."""
    text = COSCHEDULING.replace(", ARGUMENT", "")
    assert (
        configured(SchedulerSettings(), given(config(text)))[0].gang_timeout_seconds
        == 77
        != SchedulerSettings().gang_timeout_seconds
    )
    assert configured(SchedulerSettings(), given(config(text, "other"))) == configured(SchedulerSettings(), given())


def test_what_nothing_acts_on_is_told() -> None:
    """By its name in the ConfigMap."""
    _, unserved = configured(
        SchedulerSettings(), given(config(COSCHEDULING.replace("ARGUMENT", "controllerWorkers: 3")))
    )
    assert [line for line in unserved if "controllerWorkers" in line] == list(unserved) != []


def test_what_is_wrong_is_named_by_its_file() -> None:
    with pytest.raises(ConfigurationFault, match=r"^file document 1: ConfigMap koord-scheduler-config"):
        configured(SchedulerSettings(), given(config(COSCHEDULING.replace("77s, ARGUMENT", "many"))))

"""Settings: the variables of a TrainingJob's pod, and one sentence for each that cannot be used."""

from __future__ import annotations

import pytest

from sublet_sdk.faults import SettingFault
from sublet_sdk.manifest import JobKey
from sublet_sdk.settings import CheckpointSettings, from_environment

POD = {
    "SUBLET_CHECKPOINT_URL": "s3://bucket/path",
    "SUBLET_CHECKPOINT_INTERVAL_SECONDS": "300",
    "SUBLET_CHECKPOINT_MAX": "2",
    "SUBLET_JOB_NAMESPACE": "ml",
    "SUBLET_JOB_NAME": "bert",
}


def test_what_a_pod_is_told() -> None:
    assert from_environment(POD) == CheckpointSettings("s3://bucket/path", JobKey("ml", "bert"), 300.0, 2)


def test_interval_and_number_may_be_absent() -> None:
    told = {name: value for name, value in POD.items() if "INTERVAL" not in name and "MAX" not in name}
    assert from_environment(told) == CheckpointSettings("s3://bucket/path", JobKey("ml", "bert"), 0.0, 0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SUBLET_CHECKPOINT_URL", "", "SUBLET_CHECKPOINT_URL: is not set; set it, or run as a TrainingJob"),
        ("SUBLET_JOB_NAME", " ", "SUBLET_JOB_NAME: is not set"),
        ("SUBLET_JOB_NAMESPACE", "a/b", "job namespace 'a/b': is no name"),
        ("SUBLET_CHECKPOINT_INTERVAL_SECONDS", "5m", "SUBLET_CHECKPOINT_INTERVAL_SECONDS: is '5m'; give a number"),
        ("SUBLET_CHECKPOINT_INTERVAL_SECONDS", "inf", "is 'inf'"),
        ("SUBLET_CHECKPOINT_MAX", "-1", "SUBLET_CHECKPOINT_MAX: is '-1'"),
        ("SUBLET_CHECKPOINT_MAX", "1.5", "give a whole number"),
    ],
)
def test_what_cannot_be_used(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingFault, match=said.replace("(", r"\(")):
        from_environment({**POD, name: value})


@pytest.mark.parametrize(
    ("url", "interval", "most"), [("", 0, 0), ("/c", -1, 0), ("/c", float("nan"), 0), ("/c", 0, -1)]
)
def test_settings_of_a_caller(url: str, interval: float, most: int) -> None:
    with pytest.raises(SettingFault, match="give"):
        CheckpointSettings(url, JobKey("ml", "bert"), interval, most)

"""Settings: where checkpoints lie, how often and how many; from the environment that a TrainingJob's pods get. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sublet_sdk.faults import SettingFault
from sublet_sdk.manifest import JobKey

URL = "SUBLET_CHECKPOINT_URL"
INTERVAL = "SUBLET_CHECKPOINT_INTERVAL_SECONDS"
MOST = "SUBLET_CHECKPOINT_MAX"
NAMESPACE = "SUBLET_JOB_NAMESPACE"
NAME = "SUBLET_JOB_NAME"
NOTICE_FILE = "SUBLET_NOTICE_FILE"
SOCKET_FOLDER = "SUBLET_SOCKET_DIR"


@dataclass(frozen=True)
class CheckpointSettings:
    """`url` is a folder that fsspec knows: a path, `s3://bucket/path`, `memory://name`.

    A checkpoint is due each `interval_seconds`; 0: on notice alone. The newest `most` are kept; 0: all.

    :raises SettingFault: an empty URL, a negative number
    """

    url: str
    job: JobKey
    interval_seconds: float = 0.0
    most: int = 0

    def __post_init__(self) -> None:
        if not self.url.strip():
            raise SettingFault("url", "is empty", "give a folder such as /checkpoints or s3://bucket/path")
        if not (math.isfinite(self.interval_seconds) and self.interval_seconds >= 0):
            raise SettingFault("interval_seconds", f"is {self.interval_seconds}", "give seconds, 0 for none")
        if self.most < 0:
            raise SettingFault("most", f"is {self.most}", "give how many checkpoints are kept, 0 for all")


def from_environment(variables: Mapping[str, str]) -> CheckpointSettings:
    """What a TrainingJob with `spec.checkpoint` gives to its pods.

    :raises SettingFault: a variable is absent or cannot be used
    """
    job = JobKey(_needed(variables, NAMESPACE), _needed(variables, NAME))
    interval, most = _number(variables, INTERVAL), _number(variables, MOST)
    if most != int(most):
        raise SettingFault(MOST, f"is {variables[MOST]!r}", "give a whole number of 0 or more")
    return CheckpointSettings(_needed(variables, URL), job, interval, int(most))


def _needed(variables: Mapping[str, str], name: str) -> str:
    value = variables.get(name, "").strip()
    if not value:
        raise SettingFault(name, "is not set", "set it, or run as a TrainingJob with spec.checkpoint")
    return value


def _number(variables: Mapping[str, str], name: str) -> float:
    text = variables.get(name, "").strip() or "0"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise SettingFault(name, f"is {text!r}", "give a number of 0 or more")
    return value

"""Commands as vcctl writes them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kube.dialects.jobs.volcano_command import target_uid, volcano_command
from kube.objects import Metadata, OwnerReference, VolcanoCommand
from model.job.job import JobCommand, RuleAction

JOB = OwnerReference("batch.volcano.sh/v1alpha1", "Job", "train", "u1", controller=True)
AT = datetime(2026, 1, 1, tzinfo=UTC)
ABOUT = Metadata(name="train-abortjob-x7", namespace="ml", uid="c1", creation_timestamp=AT)


def test_a_command() -> None:
    source = VolcanoCommand(ABOUT, "AbortJob", JOB)
    expected = JobCommand("train-abortjob-x7", "c1", AT.timestamp(), RuleAction.ABORT_JOB, "AbortJob")
    assert (target_uid(source), volcano_command(source)) == ("u1", expected)


@pytest.mark.parametrize("action", ["SyncJob", "RestartTask", "CloseQueue", "", "x" * 999])
def test_an_action_that_is_not_known(action: str) -> None:
    found = volcano_command(VolcanoCommand(ABOUT, action, JOB))
    assert (found.action, found.text) == (None, action[:80])


OTHERS = {
    "a queue": OwnerReference("scheduling.volcano.sh/v1beta1", "Queue", "train", "u1"),
    "Kubernetes' Job": OwnerReference("batch/v1", "Job", "train", "u1"),
    "nothing": None,
}


@pytest.mark.parametrize("target", OTHERS.values(), ids=OTHERS)
def test_what_it_is_not_about(target: OwnerReference | None) -> None:
    assert target_uid(VolcanoCommand(ABOUT, "AbortJob", target)) == ""

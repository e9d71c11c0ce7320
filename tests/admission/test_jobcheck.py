"""TrainingJobs: refused in one sentence, or told what is not acted on."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from admission.check_result import CheckResult
from admission.core.queue_rules import KnownQueue
from admission.jobcheck import check_training_job
from kube.objects import Metadata, TrainingJob
from model.priority import PriorityClass


class Around:
    """A cluster with one queue and one class."""

    def local_queues(self) -> tuple[str, ...]:
        return ()

    def queues(self) -> dict[str, KnownQueue]:
        return {"research": None}  # type: ignore[dict-item]

    def classes(self) -> dict[str, PriorityClass]:
        return {"high": PriorityClass("high")}


def checked(**spec: Any) -> CheckResult:
    template = {"spec": {"containers": [{"name": "main"}]}}
    whole = {"jobType": "PyTorchJob", "resources": {"minReplicas": 1}, "template": template, **spec}
    source = TrainingJob(Metadata(name="train", namespace="ml"), msgspec.Raw(msgspec.json.encode(whole)))
    return check_training_job(source, Around())  # type: ignore[arg-type]


def test_nothing_to_say() -> None:
    assert checked(schedulingConfig={"queue": "research", "priorityClassName": "high"}) == CheckResult()


def test_what_makes_no_pods_is_refused() -> None:
    assert checked(template={}).refusals == (
        "TrainingJob ml/train: spec.template: is empty (write a pod template with spec.containers)",
    )


TOLD: dict[str, tuple[dict[str, Any], str]] = {
    "no such queue": (
        {"schedulingConfig": {"queue": "lab"}},
        "spec.schedulingConfig.queue is lab, and there is no queue",
    ),
    "no such class": ({"schedulingConfig": {"priorityClassName": "low"}}, "there is no PriorityClass low yet"),
}


@pytest.mark.parametrize(("spec", "words"), TOLD.values(), ids=TOLD)
def test_what_is_told(spec: dict[str, Any], words: str) -> None:
    found = checked(**spec)
    assert found.refusals == () and len(found.warnings) == 1 and words in found.warnings[0]

"""Templates that make pods, and names that make host names: told by the two kinds of jobs (test_training_job.py), and
here what both have in common.
"""

from __future__ import annotations

import pytest
from job_objects import TEMPLATE

from kube.dialects.jobs.template import check_names, pod_template
from model.fault import ConfigurationFault
from model.job.job import JobTask


def test_a_template_is_kept_as_it_is() -> None:
    assert pod_template(TEMPLATE, "spec.template") is TEMPLATE


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {},
        "text",
        [],
        {"spec": {}},
        {"spec": {"containers": [{"image": "a"}]}},
        {"spec": {"containers": [{"name": "a", "env": "text"}]}},
        {"spec": {"containers": [{"name": "a", "env": [{"name": {}}]}]}},
        {"spec": {"containers": [{"name": "a", "volumeMounts": [{"mountPath": []}]}]}},
        {"spec": {"containers": [{"name": "a"}], "affinity": {"nodeAffinity": "text"}}},
        {"spec": {"containers": [{"name": "a"}]}, "metadata": {"labels": {"a": 1}}},
    ],
)
def test_what_makes_no_pod(raw: object) -> None:
    with pytest.raises(ConfigurationFault, match=r"spec\.template"):
        pod_template(raw, "spec.template")


@pytest.mark.parametrize(
    "key", ["scheduling.koordinator.sh/resource-status", "sublet.dev/charged-queue", "sublet.dev/preemption-notice"]
)
def test_a_template_that_says_what_only_the_scheduler_may(key: str) -> None:
    """The scheduler's account makes the pods of jobs, and is let through."""
    raw = {**TEMPLATE, "metadata": {"annotations": {key: "{}"}}}
    with pytest.raises(ConfigurationFault, match=f"spec.template.metadata.annotations: has {key} .leave it out"):
        pod_template(raw, "spec.template")


def test_a_template_that_is_too_deep() -> None:
    deep: dict[str, object] = {}
    for _ in range(80):
        deep = {"a": deep}
    with pytest.raises(ConfigurationFault, match="nested more than"):
        pod_template({**TEMPLATE, "metadata": deep}, "spec.template")


@pytest.mark.parametrize("job", ["with.dots", "Upper", "-a"])
def test_names_of_jobs_that_are_no_host_names(job: str) -> None:
    with pytest.raises(ConfigurationFault, match="is no host name"):
        check_names(job, [JobTask("worker", 1, 1, {})], "TrainingJob ml/x")

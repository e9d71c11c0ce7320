"""The TrainingJob that is submitted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from cli.submit.manifest import CommandJob, environment, of_command, of_documents
from kube.dialects.jobs.training_job import training_job
from kube.objects import Metadata, TrainingJob
from model.fault import ConfigurationFault
from model.job.job import Framework

JOB = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "bert"}, "spec": {}}


def test_a_command_with_everything() -> None:
    """What the controller reads of it is what was asked for."""
    job = CommandJob(
        ("python", "train.py", "--lr", "1"),
        name="bert",
        image="python:3",
        framework=Framework.TENSORFLOW,
        replicas=3,
        gpus=2,
        cpu="4",
        memory="8Gi",
        queue="research",
        priority_class="high",
        max_retry=1,
        environment={"SEED": "7"},
    )
    document = of_command(job)
    read = training_job(TrainingJob(Metadata("bert", "ml"), msgspec.Raw(msgspec.json.encode(document["spec"]))))
    assert (read.problem, read.framework, read.most_failures) == ("", Framework.TENSORFLOW, 1)
    assert (read.group.queue, read.group.priority_class, read.group.minimum) == ("research", "high", 3)
    (container,) = read.tasks[0].template["spec"]["containers"]
    assert (container["command"], container["env"]) == (list(job.command), [{"name": "SEED", "value": "7"}])
    assert container["resources"]["requests"] | container["resources"]["limits"] == {
        "cpu": "4",
        "memory": "8Gi",
        "nvidia.com/gpu": "2",
    }


NAMES = {
    "python3": "python3-",
    "./Train_BERT.py": "train-bert-",
    "/usr/bin/[": "job-",
    "x" * 80: "x" * 40 + "-",
}


@pytest.mark.parametrize(("program", "stem"), NAMES.items(), ids=["plain", "a path", "no name", "long"])
def test_a_name_of_its_own(program: str, stem: str) -> None:
    """One that the server completes, and that an object may have."""
    assert of_command(CommandJob((program,)))["metadata"] == {"generateName": stem}


def test_what_is_not_asked_for_is_not_said() -> None:
    """Defaults are the definition's and the controller's."""
    spec = of_command(CommandJob(("true",), cpu="1"))["spec"]
    assert spec.keys() == {"jobType", "resources", "template"}
    assert spec["resources"] == {"minReplicas": 1, "replicaResources": {"cpu": "1"}}


def test_a_file() -> None:
    """As it stands there."""
    assert of_documents([None, JOB], "f") is JOB


REFUSED: dict[str, tuple[list[Any], str]] = {
    "nothing": ([None], "f: holds 0 documents (give a file with one TrainingJob)"),
    "two": ([JOB, JOB], "f: holds 2 documents"),
    "a word": (["job"], "f: holds 1 documents"),
    "another kind": ([{"apiVersion": "v1", "kind": "Pod"}], "f: is v1 Pod (give a TrainingJob of sublet.dev/v1alpha1"),
    "no kind": ([{"metadata": {}}], "f: is an object without kind"),
    "no name": ([{**JOB, "metadata": {}}], "f: has no metadata.name (name it)"),
}


@pytest.mark.parametrize(("documents", "problem"), REFUSED.values(), ids=REFUSED)
def test_a_file_of_something_else(documents: list[Any], problem: str) -> None:
    with pytest.raises(ConfigurationFault) as refused:
        of_documents(documents, "f")
    assert str(refused.value).startswith(problem)


def test_the_environment() -> None:
    """Values may hold anything, `=` included."""
    assert environment(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    for wrong in ("A", "=1"):
        with pytest.raises(ConfigurationFault, match="is not NAME=VALUE"):
            environment([wrong])

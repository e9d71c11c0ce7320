"""An image and a command name a program of this machine, or a clear reason why not."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from embedded.node.images.commands import Missing, Refused, family, resolve, search_path

HOST = {"sh": "/bin/sh", "sleep": "/bin/sleep", "train": "/opt/train"}


def find(program: str) -> str | None:
    return HOST.get(program)


@pytest.mark.parametrize(
    ("container", "argv"),
    [
        pytest.param(
            {"image": "busybox", "command": ["sh", "-c"], "args": ["echo $(A)"]},
            ["/bin/sh", "-c", "echo 1"],
            id="busybox",
        ),
        pytest.param(
            {"image": "alpine:3", "command": None, "args": ["sleep", "1"]},
            ["/bin/sleep", "1"],
            id="args only, known family",
        ),
        pytest.param({"image": "python:3.9", "command": ["python", "-V"]}, [sys.executable, "-V"], id="python"),
        pytest.param(
            {"image": "corp.example/ml:1", "command": ["python3", "t.py"]},
            [sys.executable, "t.py"],
            id="python elsewhere",
        ),
        pytest.param(
            {"image": "corp.example:5000/ml/x", "command": ["train"]}, ["/opt/train"], id="unknown image, known program"
        ),
        pytest.param({"image": "registry.k8s.io/pause:3.9", "command": None}, ["/bin/sleep", "infinity"], id="pause"),
    ],
)
def test_runs(pod: Any, container: dict[str, Any], argv: list[str]) -> None:
    """The first word is a program that exists, variables are put in."""
    assert resolve(pod(containers=[container]).spec.containers[0], {"A": "1"}, find) == argv


@pytest.mark.parametrize(
    ("container", "kind", "words"),
    [
        pytest.param({"image": "busybox", "command": ["nonesuch"]}, Missing, 'exec: "nonesuch"', id="no such program"),
        pytest.param({"image": "nginx", "command": None}, Refused, "write command", id="default command unknown"),
        pytest.param(
            {"image": "nginx", "command": None, "args": ["-g"]}, Refused, "write command", id="entry point unknown"
        ),
        pytest.param({"image": "No Such:Image"}, Refused, "couldn't parse image name", id="not an image name"),
    ],
)
def test_does_not_run(pod: Any, container: dict[str, Any], kind: type, words: str) -> None:
    """A missing program ends the container; an unusable image keeps it waiting."""
    outcome = resolve(pod(containers=[container]).spec.containers[0], {}, find)
    assert isinstance(outcome, kind) and words in outcome.message


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("python:3.9", "python"),
        ("docker.io/library/python", "python"),
        ("h:5000/a/b:c@sha256:00", "b"),
        ("busybox", "busybox"),
    ],
)
def test_family(image: str, name: str) -> None:
    """Registry, path, tag and digest are left out."""
    assert family(image) == name


def test_python_path() -> None:
    """A shell in a python image finds this interpreter first; other images do not see it."""
    assert search_path("python:3.12").split(":")[0] in sys.executable
    assert search_path("busybox").startswith("/usr/local/sbin")

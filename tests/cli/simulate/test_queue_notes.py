"""What a cluster would say of the queues that are given, on standard error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


NOTES: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "a tree that adds up": ([queue("org", quota={"guaranteed": {"gpu": 4}}), queue("a", parent="org")], []),
    "guarantees of more than their parent's": (
        [
            queue("org", quota={"guaranteed": {"gpu": 4}}),
            queue("a", parent="org", quota={"guaranteed": {"gpu": 3}}),
            queue("b", parent="org", quota={"guaranteed": {"gpu": 2}}),
        ],
        [
            "a cluster refuses Queue org: spec.quota.guaranteed.nvidia.com/gpu is 4, less than the 5 of queues a, b below it; raise it, or lower theirs",
            "a cluster refuses Queue a: spec.quota.guaranteed.nvidia.com/gpu is 3: the queues of org would have 5 together, more than its 4; lower it",
            "a cluster refuses Queue b: spec.quota.guaranteed.nvidia.com/gpu is 2: the queues of org would have 5 together, more than its 4; lower it",
        ],
    ),
    "a parent that is not given": (
        [queue("a", parent="org")],
        ["a cluster refuses Queue a: spec.parent is org, and there is no queue of that name; create it first"],
    ),
    "a lender that is not given": (
        [queue("a", borrowing={"allowedQueues": ["typo"]})],
        ["Queue a: spec.borrowing.allowedQueues: no such queue typo; create what is meant, or name another"],
    ),
    "a field that there is none of": ([queue("a", wieght=2)], ["Queue a: spec.wieght: a Queue has no such field"]),
}


@pytest.mark.parametrize("case", NOTES)
def test_notes(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All is decided; what a cluster would not have let in is told."""
    objects, told = NOTES[case]
    file = tmp_path / "queues.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    assert main(["simulate", "cluster", "-f", str(file), "-o", "json"]) == 0
    assert capsys.readouterr().err.splitlines() == [f"note: {each}" for each in told]

"""Which process stands for a pod: the first that some container of it shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.core.observe.layout import PodDirectory
from agent.edge.processes import processes
from model.pod.status import PodPhase
from tests.pods import with_fields

CASES: dict[str, tuple[Mapping[str, str | None], dict[str, Any], dict[str, int]]] = {
    # cgroup.procs by container (None: no such cgroup), what is special about the pod, what is found
    "one container": ({"c1": "42\n43\n"}, {}, {"uid-web": 42}),
    "the first is empty": ({"c1": "", "c2": "7\n"}, {}, {"uid-web": 7}),
    "the first is gone": ({"c1": None, "c2": "7\n"}, {}, {"uid-web": 7}),
    "the first is out of sight": ({"c1": "0\n", "c2": "7\n"}, {}, {"uid-web": 7}),
    "the first is garbage": ({"c1": "x\n", "c2": "7\n"}, {}, {"uid-web": 7}),
    "nothing runs": ({"c1": "", "c2": None}, {}, {}),
    "no container": ({}, {}, {}),
    "the host's network": ({"c1": "42\n"}, {"host_network": True}, {}),
    "a finished pod": ({"c1": "42\n"}, {"phase": PodPhase.SUCCEEDED}, {}),
    "a static pod": ({"c1": "42\n"}, {"uid": "api-uid"}, {"api-uid": 42}),
    "another pod's directory": ({"c1": "42\n"}, {"cgroup_uid": "other"}, {}),
}


@pytest.mark.parametrize(("containers", "special", "expected"), CASES.values(), ids=CASES.keys())
def test_processes(
    tmp_path: Path,
    build: Any,
    containers: Mapping[str, str | None],
    special: dict[str, Any],
    expected: dict[str, int],
) -> None:
    """By pod uid; a pod on the host's network has none of its own."""
    base = "/kubepods/poduid-web"
    for name, text in containers.items():
        if text is not None:
            (tmp_path / base.lstrip("/") / name).mkdir(parents=True)
            (tmp_path / base.lstrip("/") / name / "cgroup.procs").write_text(text)
    directory = PodDirectory(base, {name: f"{base}/{name}" for name in containers})
    pod = with_fields(build.pod("web"), **special)
    assert processes(tmp_path, (pod, build.pod("unseen")), {"uid-web": directory}) == expected

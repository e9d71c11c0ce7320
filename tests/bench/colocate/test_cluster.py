"""The command by which bench/colocate starts an agent."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import cast

from bench.colocate.cluster import BenchCluster
from bench.colocate.node import NodeTree
from bench.hierarchies import Hierarchies
from kube.client import KubeClient
from local.rundir import RunDirectory


def test_the_other_agent_is_that_of_its_checkout(tmp_path: Path) -> None:
    """The same options, and its own code, though ours is installed."""
    other = tmp_path / "other"
    (other / "agent").mkdir(parents=True)
    (other / "agent/__init__.py").touch()
    (other / "agent/__main__.py").write_text("import sys\nprint('the other', *sys.argv[1:])\n")
    with RunDirectory(tmp_path / "run") as run:
        cluster = BenchCluster(run, cast(KubeClient, None), 0)
        tree, settings = NodeTree(Hierarchies(2, Path("/"), {}), 2), tmp_path / "settings.json"
        ours, theirs = cluster.agent_command(tree, settings), cluster.agent_command(tree, settings, other)
        told = subprocess.run(theirs, capture_output=True, text=True, check=True, timeout=60).stdout
    assert theirs[-len(ours) :] == ours
    assert told.split() == ["the", "other", *ours[ours.index("agent") + 1 :]]

"""What would run with more nodes."""

from __future__ import annotations

from cli.simulate.cluster_more import MoreNodes
from cli.simulate.cluster_run import Extent
from cli.simulate.cluster_what_if import decide_with
from scheduler.settings import SchedulerSettings
from tests.cli.simulate.clusters import NOW, given, node, pod
from view.simulated_queues import WhatIfOut


def test_what_runs_with_one_more_node() -> None:
    """That alone which does not run without it; everything else is as on the larger cluster."""
    found = given(node(cpu="4"), pod("a", "3"), pod("b", "3"), pod("c", "3"))
    outcome = decide_with(found, NOW, SchedulerSettings(), Extent(), MoreNodes(1))
    assert outcome.what_if == WhatIfOut(1, "n1", ("default/b",))
    assert [row.node for row in outcome.placements] == ["n1", "n1-more-1"]


def test_without_the_question() -> None:
    """Nothing is told."""
    found = given(node(), pod())
    assert not isinstance(decide_with(found, NOW, SchedulerSettings(), Extent()).what_if, WhatIfOut)

"""A CronJob of batch work starts by itself when its minute comes.

Last in its folder by name: its cluster stays to the end, and guides start clusters of their own on the same API server.
"""

from __future__ import annotations

import pytest

from tests.e2e.conftest import ROOT, RunningCluster, until

NIGHTLY = (ROOT / "examples/guides/batch/cronjob.yaml").read_text()


@pytest.mark.slow
def test_a_schedule_that_is_due_runs(cluster: RunningCluster) -> None:
    """The guide's CronJob with a schedule of each minute, and amounts that any machine has."""
    manifest = NIGHTLY.replace('"0 2 * * *"', '"* * * * *"').replace("batch-demo", "default")
    manifest = manifest.replace('batch-cpu: "2000"', 'batch-cpu: "100"').replace("4Gi", "64Mi")
    cluster.apply(manifest)
    try:
        finished = (
            "get",
            "jobs",
            "-o",
            "jsonpath={range .items[*]}{.metadata.ownerReferences[*].name} {.status.succeeded}{end}",
        )
        assert until(lambda: "nightly-report 1" in cluster.kubectl(*finished), 90, 1.0), cluster.kubectl(
            "get", "events"
        )
        assert cluster.kubectl(
            "get", "cronjob", "nightly-report", "-o", "jsonpath={.status.lastScheduleTime}"
        ).endswith(":00Z")
    finally:
        cluster.kubectl("delete", "cronjob", "nightly-report")

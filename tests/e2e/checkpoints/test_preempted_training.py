"""A job that trains is preempted: it is told, saves, waits in its queue, goes on where it was, and loses nothing."""

from __future__ import annotations

import pytest

from tests.e2e.checkpoints.conftest import FIRST, SECOND, WORKERS, Training
from tests.e2e.conftest import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_it_goes_on_at_the_saved_step_on_the_other_node(trains: Training) -> None:
    """Three workers are told at once, save within their time, and end with the loss of a run that nobody stopped."""
    trains.gang("fills", SECOND, size=4)
    trains.all_run("fills", 4)
    job = trains.train("model")
    trains.all_run("model", WORKERS)
    assert trains.nodes("model") == {FIRST}
    trains.reaches_step("model", 50)
    before = trains.uids("model")
    with trains.watched("model") as notices:
        trains.gang("urgent", FIRST, size=4)
        told = until(lambda: len(found := notices()) == WORKERS and found, 60.0)
    assert told and {each["reason"] for each in told.values()} == {"PreemptionByScheduler"}, trains.pods("model")
    assert len({each["deadline"] for each in told.values()}) == 1
    trains.all_run("urgent", 4)
    (saved,) = trains.saved_steps("model")
    assert 50 <= saved < 300
    status = trains.reaches(job, "Queued")
    assert (status["failures"], status["evictions"]) == (0, 1), status
    trains.hurry()
    trains.clear("fills")
    assert until(lambda: trains.run_anew("model", WORKERS, before), 60.0), trains.pods("model")
    assert trains.nodes("model") == {SECOND}
    trains.reaches(job, "Succeeded", 120.0)
    assert trains.begun_after("model") == [saved] * WORKERS
    assert trains.losses("model") == [trains.uninterrupted_loss()] * WORKERS
    trains.clear("urgent", "model")

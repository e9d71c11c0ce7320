"""Saved and lost work of jobs."""

from __future__ import annotations

from model.job.labels import JOB_UID
from model.pod.pod import Pod
from model.workload import WorkloadId
from scheduler.cache.saved_work import SavedWork, job_of

ALL = frozenset({"a", "b", "c"})


def told(work: SavedWork, uid: str, at: float, members: frozenset[str] = ALL) -> bool:
    """A member of these tells of a checkpoint; whether that was news."""
    new = work.report(uid, at)
    work.share(members)
    return new


def test_a_report_is_of_all_members_and_counts_once() -> None:
    work = SavedWork()
    assert told(work, "a", 5.0) and work.saved == {"a": 5.0, "b": 5.0, "c": 5.0}
    assert not told(work, "a", 5.0) and not told(work, "a", 4.0)
    assert told(work, "b", 9.0) and work.saved == {"a": 5.0, "b": 9.0, "c": 5.0}
    assert told(work, "lone", 7.0, frozenset({"lone"})) and work.saved["lone"] == 7.0


def test_a_pod_that_is_gone() -> None:
    work = SavedWork()
    told(work, "a", 5.0)
    work.forget("a")
    assert "a" not in work.saved
    assert told(work, "b", 6.0, ALL - {"a"}) and work.saved == {"b": 6.0, "c": 6.0}


def test_losses_are_of_the_job_and_bounded() -> None:
    work = SavedWork()
    work.lose("ml/old", 1.0)
    for _ in range(2):
        work.lose("ml/bert", 2.5)
    assert (work.lost_seconds("ml/bert"), work.lost_seconds("ml/other")) == (5.0, 0.0)
    for number in range(4096):
        work.lose(f"ml/{number}", 1.0)
    assert work.lost_seconds("ml/old") == 0.0 and work.lost_seconds("ml/0") == 1.0


def test_whose_losses_they_are() -> None:
    """Of a job of ours its own, whatever its gang is called; a label alone makes nobody a job."""
    gang = WorkloadId.gang("ml/bert-1234")
    assert job_of(Pod("ml", "p", "u", labels={JOB_UID: "x"}, owned=True, owner="ml/bert"), gang) == "ml/bert"
    assert job_of(Pod("ml", "p", "u", labels={JOB_UID: "x"}), gang) == "ml/bert-1234"
    assert job_of(Pod("ml", "p", "u", owner="ml/set"), WorkloadId.pod("ml/p")) == "ml/p"

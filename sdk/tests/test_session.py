"""Session: restores, saves when due, saves and stops on notice; a storage that fails costs no progress."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sdk_cases import ONCE, Clock, FailingFiles, settings

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.checkpoints import Checkpoints
from sublet_sdk.faults import CorruptCheckpoint, SettingFault, StorageFault
from sublet_sdk.manifest import Checkpoint
from sublet_sdk.notice import FileNotice
from sublet_sdk.session import Session
from sublet_sdk.storage import Storage


@dataclass
class Notice:
    """A source that says what it is told to."""

    reason: str = ""
    deadline_seconds: float | None = None

    def noticed(self) -> str:
        return self.reason

    def close(self) -> None:
        raise AssertionError("what a caller gave is closed by the caller")


@dataclass
class Training:
    """A session over the memory, with a clock that is set by hand."""

    interval_seconds: float = 0.0
    saves: bool = True
    files: FailingFiles = field(default_factory=FailingFiles)
    notice: Notice = field(default_factory=Notice)
    seconds: float = 0.0
    withdrawn_at: float = float("inf")
    state: int = 0

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(settings(0, self.interval_seconds), Storage(self.files, "/base", ONCE), Clock())
        self.session = Session(
            self.checkpoints, lambda: {"state": b"%d" % self.state}, notices=[self.notice], saves=self.saves,
            monotonic=lambda: self.seconds, unix_time=lambda: self.seconds, sleep=self.sleep,
        )  # fmt: skip

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        if self.seconds >= self.withdrawn_at:
            self.notice.reason = ""

    def step(self, number: int) -> None:
        self.state = number
        self.session.step(number, epoch=1, metadata={"n": number})

    def saved(self) -> list[int]:
        return [each.step for each in self.checkpoints.list().checkpoints]


def test_a_save_is_due_each_interval() -> None:
    made = Training(interval_seconds=10)
    with made.session as session:
        for number in range(1, 8):
            made.seconds = number * 4.0
            made.step(number)
            session._saver.wait()  # type: ignore[union-attr]  # so that each step finds none under way
    assert made.saved() == [6, 3]
    loaded = made.checkpoints.load()
    assert loaded is not None and loaded.files == {"state": b"6"}
    assert (loaded.checkpoint.epoch, loaded.checkpoint.metadata) == (1, {"n": 6})


def test_without_an_interval_only_a_notice_saves() -> None:
    made = Training()
    with made.session as session:
        made.seconds = 1e9
        made.step(1)
        assert not session.should_stop() and session.reason == ""
    assert made.saved() == []


def test_a_notice_saves_once_and_stops() -> None:
    made = Training()
    with made.session as session:
        made.step(1)
        made.notice.reason = "preempted by ml/urgent"
        made.step(2)
        assert made.saved() == [2] and session.should_stop() and session.reason == "preempted by ml/urgent"
        made.step(2)
    assert made.saved() == [2]


def test_a_notice_after_the_last_step_saves_at_the_end() -> None:
    made = Training()
    with made.session as session:
        made.step(5)
        made.notice.reason = "evicted"
        assert session.should_stop()
    assert made.saved() == [5]


def test_a_notice_that_is_taken_back_lets_training_go_on() -> None:
    made = Training()
    with made.session as session:
        made.notice.reason = "preempted"
        made.step(1)
        made.notice.reason = ""
        assert not session.should_stop()
        made.step(2)
    assert made.saved() == [1]


def test_half_of_a_step_is_not_saved() -> None:
    made = Training()
    with pytest.raises(ZeroDivisionError), made.session:
        made.step(1)
        made.notice.reason = "evicted"
        raise ZeroDivisionError
    assert made.saved() == []


def test_a_failed_save_that_was_due_is_made_again_soon_and_training_goes_on() -> None:
    made = Training(interval_seconds=1000)
    with made.session as session:
        made.files.failures = {"write": 1}
        made.seconds = 1000
        made.step(1)
        while session._saver.saving:  # type: ignore[union-attr]
            pass
        made.step(2)
        assert isinstance(session.problem, StorageFault) and "step 1" in str(session.problem)
        made.seconds = 1060
        made.step(3)
    assert made.saved() == [3] and session.problem is None


def test_a_failed_save_on_notice_is_raised() -> None:
    made = Training()
    made.notice.reason = "evicted"
    made.files.failures = {"write": 9}
    with pytest.raises(StorageFault, match="those before it are kept"), made.session:
        made.step(1)
    assert made.seconds == 0


def test_a_save_on_notice_is_tried_again_until_the_deadline(caplog: pytest.LogCaptureFixture) -> None:
    made = Training(notice=Notice("evicted", deadline_seconds=30.0))
    made.files.failures = {"write": 5}
    with made.session as session:
        made.step(1)
        assert session.problem is None
    assert made.saved() == [1] and made.seconds == 5
    assert "tried again, 30 s are left" in caplog.text
    made = Training(notice=Notice("evicted", deadline_seconds=3.0))
    made.files.failures = {"write": 99}
    with pytest.raises(StorageFault), made.session:
        made.step(1)
    assert made.seconds == 2


def test_a_notice_that_is_taken_back_ends_the_attempts() -> None:
    made = Training(notice=Notice("evicted", deadline_seconds=30.0), withdrawn_at=2.0)
    made.files.failures = {"write": 99}
    with made.session as session:
        made.step(1)
        assert isinstance(session.problem, StorageFault) and not session.should_stop()
        made.step(2)
    assert made.saved() == []


def test_training_goes_on_from_what_was_saved() -> None:
    made = Training()
    with made.session as session:
        assert session.restore() is None
        made.step(4)
        session.save()
    again = Training(files=made.files)
    with again.session as session:
        found = session.restore()
        assert found is not None and found.checkpoint.step == 4 and found.files == {"state": b"4"}
        again.notice.reason = "evicted at once"
    assert again.saved() == [4]


def test_what_the_storage_does_not_tell_is_not_begun_from_nothing() -> None:
    made = Training()
    with made.session as session:
        made.step(1)
        saved = session.save()
        made.files.failures = {"list": 1}
        with pytest.raises(StorageFault):
            session.restore()
        assert saved is not None
        made.files.pipe_file(f"/base/ml/bert/{saved.id}/state", b"?")
        with pytest.raises(CorruptCheckpoint):
            session.restore()


def test_a_worker_that_does_not_save_is_told_to_stop() -> None:
    made = Training(interval_seconds=1, saves=False)
    with made.session as session:
        made.seconds = 10
        made.step(1)
        made.notice.reason = "evicted"
        made.step(2)
        assert session.should_stop() and session.save() is None
    assert made.saved() == []


def test_a_session_is_open_and_told_of_steps() -> None:
    made = Training()
    with pytest.raises(SettingFault, match="use it as a context manager"):
        made.step(1)
    with pytest.raises(SettingFault, match=r"call step\(\) before save"), Training().session as session:
        session.save()


def test_why_a_run_begins_where_it_does_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """From the beginning, since there is no checkpoint; or after a step."""
    made = Training()
    with caplog.at_level(logging.INFO), made.session as session:
        assert session.restore() is None
        made.notice.reason = "preempted"
        made.step(7)
        assert session.restore() is not None
    told = [each.message for each in caplog.records if "ml/bert" in each.message]
    assert "has no checkpoint of it" in told[0] and told[-1].endswith("goes on from step 7")


def test_the_notice_file_of_the_environment(tmp_path: Path) -> None:
    made = Training()
    made.session = Session(made.checkpoints, lambda: {"state": b"x"}, notices=[FileNotice(tmp_path / "notice")])
    with made.session:
        made.step(1)
        (tmp_path / "notice").write_text("reclaimed")
        made.step(2)
    assert made.saved() == [2]


class Heard(AgentSocket):
    """Without a thread: what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[int, float]] = []

    def noticed(self) -> str:
        return ""

    def saved(self, checkpoint: Checkpoint, begun_seconds: float) -> None:
        self.told.append((checkpoint.step, begun_seconds))


def test_the_nodes_agent_hears_of_each_save_and_of_no_failure() -> None:
    """With the time by this machine's clock, although a node before it was ahead; nothing once the session is over."""
    made, agent = Training(interval_seconds=10), Heard()
    made.session._given = [made.notice, agent]  # type: ignore[list-item]
    ahead = Checkpoints(settings(), made.checkpoints._storage, lambda: 10**18 * 2)
    ahead.save({"state": b"0"}, step=0)
    with made.session as session:
        made.seconds = 20.0
        made.step(1)
        session._saver.wait()  # type: ignore[union-attr]
        made.notice.reason = "preempted"
        made.step(2)
        assert [step for step, _ in agent.told] == [1, 2]
        assert all(begun < 10**9 * 2 for _, begun in agent.told)
        made.files.failures["write"] = 1
        with pytest.raises(StorageFault):
            made.step(3)
        made.notice.reason = ""
    made.checkpoints.save({"state": b"9"}, step=9)
    assert [step for step, _ in agent.told] == [1, 2]

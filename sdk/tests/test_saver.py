"""Asynchronous save: one at a time, of the state as it was, and its failure is told by the next call."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sdk_cases import FailingFiles, checkpoints

from sublet_sdk.faults import SettingFault, StorageFault
from sublet_sdk.saver import AsynchronousSaver


class WaitingFiles(FailingFiles):
    """Writes once it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.may_write, self.at_a_time, self.most = threading.Event(), 0, 0

    def open(self, path: str, mode: str = "rb", **more: Any) -> Any:
        if "w" in mode:
            self.at_a_time += 1
            self.most = max(self.most, self.at_a_time)
            assert self.may_write.wait(60)
            self.at_a_time -= 1
        return super().open(path, mode, **more)


def test_training_goes_on_and_what_it_changes_is_not_saved() -> None:
    files = WaitingFiles()
    store = checkpoints(files)
    saver, state = AsynchronousSaver(store), bytearray(b"as it was")
    saver.save({"a": state}, step=1)
    state[:] = b"after it!"
    assert saver.saving and store.latest() is None
    files.may_write.set()
    made = saver.wait()
    loaded = store.load()
    assert made is not None and loaded is not None and loaded.files == {"a": b"as it was"} and not saver.saving
    assert saver.wait() is None
    saver.close()


def test_one_at_a_time() -> None:
    files = WaitingFiles()
    saver = AsynchronousSaver(checkpoints(files))
    saver.save({"a": b"1"}, step=1)
    second = threading.Thread(target=saver.save, args=({"a": b"2"},), kwargs={"step": 2})
    second.start()
    files.may_write.set()
    second.join(60)
    saver.close()
    assert files.most == 1 and [each.step for each in checkpoints(files).list().checkpoints] == [2, 1]


def test_a_failure_is_told_by_the_next_call_once() -> None:
    files = FailingFiles()
    saver = AsynchronousSaver(checkpoints(files))
    files.failures = {"write": 1}
    saver.save({"a": b"1"}, step=1)
    with pytest.raises(StorageFault, match="step 1 of ml/bert was not saved"):
        saver.save({"a": b"2"}, step=2)
    saver.save({"a": b"2"}, step=2)
    saver.close()
    assert [each.step for each in checkpoints(files).list().checkpoints] == [2]


def test_a_failure_is_told_at_the_end() -> None:
    files = FailingFiles()
    saver = AsynchronousSaver(checkpoints(files))
    files.failures = {"write": 1}
    saver.save({"a": b"1"}, step=1)
    with pytest.raises(StorageFault):
        saver.close()


def test_what_cannot_be_saved_is_told_at_once() -> None:
    saver = AsynchronousSaver(checkpoints())
    with pytest.raises(SettingFault, match="give bytes"):
        saver.save({"a": "text"}, step=1)  # type: ignore[dict-item]
    saver.close()

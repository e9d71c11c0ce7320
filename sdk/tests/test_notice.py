"""Notice: SIGTERM and a file; what is taken is given back."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.notice import FileNotice, SignalNotice, sources_here


def test_sigterm_is_a_notice_and_the_handler_before_is_called_and_comes_back() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        source = SignalNotice()
        assert source.noticed() == ""
        os.kill(os.getpid(), signal.SIGTERM)
        assert source.noticed() == "SIGTERM" and heard == [signal.SIGTERM]
        source.close()
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(None, ""), ("reclaimed by queue research\nmore", "reclaimed by queue research"), ("", ""), ("\n", "")],
)
def test_a_notice_file(tmp_path: Path, content: str | None, reason: str) -> None:
    path = tmp_path / "notice"
    if content is not None:
        path.write_text(content)
    assert FileNotice(path).noticed() == reason and FileNotice(path).deadline_seconds is None


def test_a_notice_as_the_scheduler_writes_it(tmp_path: Path) -> None:
    """By SUBLET_NOTICE_FILE, which is the annotation."""
    path = tmp_path / "notice"
    path.write_text('{"deadline":"2026-01-02T03:04:35Z","since":"2026-01-02T03:04:05Z","reason":"Reclaimed","by":"g"}')
    assert (FileNotice(path).noticed(), FileNotice(path).deadline_seconds) == ("Reclaimed", 1767323075.0)


def test_a_notice_that_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "notice"
    path.write_text("preempted")
    source = FileNotice(path)
    assert source.noticed() == "preempted"
    path.unlink()
    assert source.noticed() == ""


def test_a_notice_file_that_cannot_be_read_is_a_notice(tmp_path: Path) -> None:
    """A save too many costs seconds, a missed one hours."""
    assert "cannot be read" in FileNotice(tmp_path).noticed()


def test_the_sources_of_this_process(tmp_path: Path) -> None:
    """SIGTERM is heard in the main thread alone: Python sets handlers nowhere else."""
    variables = {"SUBLET_NOTICE_FILE": str(tmp_path / "n"), "SUBLET_SOCKET_DIR": str(tmp_path / "none")}
    found = sources_here(variables)
    assert [type(each) for each in found] == [SignalNotice, AgentSocket, FileNotice]
    for each in found:
        each.close()
    elsewhere: list[object] = []
    thread = threading.Thread(target=lambda: elsewhere.extend(sources_here({})))
    thread.start()
    thread.join()
    assert elsewhere == []

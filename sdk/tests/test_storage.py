"""Storage: files at a URL; what is absent is an answer; a URL that nothing serves is one sentence."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from sdk_cases import ONCE, FailingFiles, Pauses, Stopped, StoppingFiles, folder, memory

from sublet_sdk.faults import SettingFault, StorageFault
from sublet_sdk.manifest import StoredFile
from sublet_sdk.retries import Retries
from sublet_sdk.sources import BytesKept
from sublet_sdk.storage import Storage, opened

ABC = StoredFile(3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
"""SHA-256 of `abc` as FIPS 180-2 has it."""


def read(storage: Storage, name: str) -> bytes:
    kept = BytesKept()
    storage.read(name, kept.opened)
    return kept.bytes


@pytest.mark.parametrize("place", ["memory", "disk", "url"])
def test_what_is_written_is_read(place: str, tmp_path: Path) -> None:
    """With its size and SHA-256; folders are listed in order; deleting twice is deleting once."""
    storage = {
        "memory": lambda: Storage(memory(), "/base", ONCE),
        "disk": lambda: opened(folder(tmp_path)),
        "url": lambda: opened(f"file://{tmp_path}/base/"),
    }[place]()
    assert storage.write("job/2/a/b", lambda: io.BytesIO(b"abc")) == ABC
    assert storage.write_whole("job/1/m", lambda: io.BytesIO(b"abc")) == ABC
    assert storage.folders("job") == ["1", "2"] and storage.folders("other") == []
    assert read(storage, "job/2/a/b") == b"abc" == read(storage, "job/1/m")
    with pytest.raises(FileNotFoundError):
        read(storage, "job/1/other")
    for _ in range(2):
        storage.delete("job/1/m")
        storage.delete_folder("job/2")
    assert "2" not in storage.folders("job")


def test_a_whole_file_appears_at_once(tmp_path: Path) -> None:
    """A process that ends while it writes leaves none of that name."""
    files = StoppingFiles(stop_at=3)
    with pytest.raises(Stopped):
        Storage(files, folder(tmp_path), ONCE).write_whole("m", lambda: io.BytesIO(b"abcdef"))
    assert [each.name for each in (tmp_path / "base").iterdir()] == ["m.partial"]


def test_each_attempt_begins_from_the_start() -> None:
    files, pauses = FailingFiles(), Pauses()
    files.failures = {"write": 2, "read": 1, "list": 1}
    storage = Storage(files, "/base", Retries(sleep=pauses))
    assert storage.write("job/1/a", lambda: io.BytesIO(b"abc")) == ABC
    assert read(storage, "job/1/a") == b"abc" and storage.folders("job") == ["1"]
    assert len(pauses.seconds) == 4


def test_a_storage_that_does_not_tell_is_not_an_empty_one() -> None:
    files = FailingFiles()
    files.failures = {"list": 9}
    with pytest.raises(StorageFault, match="list /base/job: ConnectionResetError"):
        Storage(files, "/base", ONCE).folders("job")


def test_no_more_is_read_than_was_saved() -> None:
    """A file that grew is no reason to fill the memory."""
    storage = Storage(memory(), "/base", ONCE)
    storage.write("a", lambda: io.BytesIO(bytes(5 << 20)))
    assert storage.read("a", BytesKept().opened, limit_bytes=10).size == 1 << 20


@pytest.mark.parametrize("url", ["nothing-like-it://x", "dropbox://x"])
def test_a_url_that_nothing_here_serves(url: str) -> None:
    with pytest.raises(SettingFault, match="give a path, or a URL whose package is installed"):
        opened(url)

"""Checkpoints: saved whole or not at all, the newest sound one is found, and a storage that fails loses nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from sdk_cases import (
    JOB,
    ONCE,
    Clock,
    FailingFiles,
    Stopped,
    StoppingFiles,
    checkpoints,
    folder,
    memory,
    settings,
    spoil,
)

from sublet_sdk import manifest
from sublet_sdk.checkpoints import PARTIAL_KEPT_SECONDS, Checkpoints
from sublet_sdk.faults import CorruptCheckpoint, NoCheckpoint, SettingFault, StorageFault
from sublet_sdk.storage import Storage

FILES = {"model.npz": b"weights", "optimizer/state": b"moments"}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    """Key base/namespace/name/id; step, epoch, times, size and metadata come back."""
    store = Checkpoints.at(folder(tmp_path), JOB.text)
    saved = store.save(FILES, step=7, epoch=2, metadata={"loss": 0.5})
    loaded = store.load()
    assert loaded is not None and loaded.checkpoint == saved == store.latest() and loaded.files == FILES
    assert (saved.step, saved.epoch, saved.metadata, saved.size, saved.job) == (7, 2, {"loss": 0.5}, 14, "ml/bert")
    assert saved.begun <= saved.complete
    told = json.loads((tmp_path / "base/ml/bert" / saved.id / "manifest.json").read_text())
    assert told["step"] == 7 and told["files"]["model.npz"]["size"] == 7


def test_files_are_loaded_into_a_folder(tmp_path: Path) -> None:
    store = checkpoints()
    saved = store.save({"a/b": b"1", "c": tmp_path_file(tmp_path)}, step=1)
    assert store.load_into(tmp_path / "out") == saved
    assert (tmp_path / "out/a/b").read_bytes() == b"1" and (tmp_path / "out/c").read_bytes() == b"from disk"
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["a", "c"]


def tmp_path_file(tmp_path: Path) -> Path:
    (tmp_path / "source").write_bytes(b"from disk")
    return tmp_path / "source"


def test_where_nothing_was_saved() -> None:
    store = checkpoints()
    assert store.latest() is None and store.load() is None and store.list().checkpoints == ()
    store.delete(manifest.new_id(1, "00000000"))
    with pytest.raises(NoCheckpoint, match="ml/bert has no complete checkpoint"):
        store.load(manifest.new_id(1, "00000000"))


def test_the_list_goes_on_where_it_ended() -> None:
    """Newest first; a page ends with the id after which the next begins; what is saved meanwhile shifts nothing."""
    store = checkpoints()
    ids = [store.save(FILES, step=step).id for step in range(5)][::-1]
    first = store.list(most=2)
    store.save(FILES, step=9)
    second = store.list(first.next, most=2)
    third = store.list(second.next, most=2)
    assert [each.id for page in (first, second, third) for each in page.checkpoints] == ids
    assert third.next == ""
    with pytest.raises(SettingFault, match="most: is 0"):
        store.list(most=0)
    with pytest.raises(SettingFault, match="give one that list"):
        store.list("../x")


@pytest.mark.parametrize(("most", "steps"), [(0, [3, 2, 1, 0]), (1, [3]), (3, [3, 2, 1]), (9, [3, 2, 1, 0])])
def test_the_newest_are_kept(most: int, steps: list[int]) -> None:
    """0 keeps all."""
    store = checkpoints(most=most)
    for step in range(4):
        store.save(FILES, step=step)
    assert [each.step for each in store.list().checkpoints] == steps


def test_a_clean_up_that_fails_does_not_fail_the_save(caplog: pytest.LogCaptureFixture) -> None:
    files = FailingFiles()
    store = checkpoints(files, most=1)
    store.save(FILES, step=1)
    files.failures = {"delete": 9}
    with caplog.at_level(logging.WARNING):
        store.save(FILES, step=2)
    assert "old checkpoints of ml/bert stay for now, the new one is saved" in caplog.text
    assert [each.step for each in store.list().checkpoints] == [2, 1]
    files.failures = {}
    store.save(FILES, step=3)
    assert [each.step for each in store.list().checkpoints] == [3]


def test_only_uploads_that_were_given_up_are_cleaned_up() -> None:
    """One under way stays, as do folders that are none of ours and a manifest that this version cannot read."""
    files, clock = memory(), Clock()
    store = checkpoints(files, most=1, clock=clock)
    old = manifest.new_id(clock.now_ns - int((PARTIAL_KEPT_SECONDS + 60) * 1e9), "00000000")
    young = manifest.new_id(clock.now_ns, "11111111")
    later = manifest.new_id(clock.now_ns - int(2 * PARTIAL_KEPT_SECONDS * 1e9), "22222222")
    for each in (old, young, later, "notes"):
        files.pipe_file(f"/base/ml/bert/{each}/model.npz", b"wei")
    files.pipe_file(f"/base/ml/bert/{later}/manifest.json", b'{"version": 2}')
    saved = store.save(FILES, step=1)
    assert sorted(each["name"].rpartition("/")[2] for each in files.ls("/base/ml/bert")) == [
        *sorted([later, young, saved.id]),
        "notes",
    ]


@pytest.mark.parametrize("begun", ["9" * 20, "0" + "9" * 19, "08" + "9" * 18])
def test_a_folder_from_the_far_future_hides_no_later_checkpoint(begun: str) -> None:
    """Whoever may write below the URL may make one; the id after it would have a digit too many."""
    files = memory()
    files.pipe_file(f"/base/ml/bert/{begun}-00000000/model.npz", b"wei")
    saved = checkpoints(files).save(FILES, step=7)
    again = checkpoints(files, most=1)
    assert again.latest() == saved
    assert again.save(FILES, step=8) == again.latest()


def spoilt_file(content: bytes | None) -> Callable[[FailingFiles, str], None]:
    return lambda files, checkpoint_id: spoil(files, checkpoint_id, "model.npz", content)


def cut_off_manifest(files: FailingFiles, checkpoint_id: str) -> None:
    spoil(files, checkpoint_id, "manifest.json", b'{"version": 1, "id"')


CORRUPT = {
    "a file is gone": (spoilt_file(None), "file model.npz is absent"),
    "a file is shorter": (spoilt_file(b"weigh"), "has not the 7 bytes"),
    "a file is longer": (spoilt_file(b"weights and more"), "has not the 7 bytes"),
    "a file is another": (spoilt_file(b"WEIGHTS"), "has SHA-256"),
    "the manifest is cut off": (cut_off_manifest, "its manifest cannot be read"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_a_corrupt_newest_falls_back_to_the_one_before(
    name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """With a message that names the checkpoint and what is wrong; where all are corrupt that is no beginning from nothing."""
    damage, said = CORRUPT[name]
    files = FailingFiles()
    store = checkpoints(files)
    first, second = store.save(FILES, step=1), store.save(FILES, step=2)
    damage(files, second.id)
    with caplog.at_level(logging.WARNING):
        loaded = store.load()
    assert loaded is not None and loaded.checkpoint == first
    assert said in caplog.text and second.id in caplog.text and "the one before is used" in caplog.text
    assert store.load_into(tmp_path / "out") == first
    with pytest.raises(CorruptCheckpoint, match=said):
        store.load(second.id)
    damage(files, first.id)
    with pytest.raises(CorruptCheckpoint, match="delete them to begin from nothing"):
        store.load()


def test_what_a_clean_up_takes_away_while_it_is_read() -> None:
    """The newer one, for which it went, is loaded."""
    files = FailingFiles()
    store, other = checkpoints(files), checkpoints(files, most=1, clock=Clock(1_900_000_000_000_000_000))
    store.save(FILES, step=1)

    class Racing(Storage):
        raced = False

        def read(self, *given):  # type: ignore[no-untyped-def]
            if given[0].endswith("model.npz") and not self.raced:
                self.raced = True
                other.save(FILES, step=2)
            return super().read(*given)

    loaded = Checkpoints(settings(), Racing(files, "/base", ONCE), Clock()).load()
    assert loaded is not None and loaded.checkpoint.step == 2


def test_two_writers_of_one_job_lose_nothing(tmp_path: Path) -> None:
    """Even at the same moment; the newest of both is the latest, and neither deletes what the other has under way."""
    still = lambda: 1_800_000_000_000_000_000  # noqa: E731
    one, two = (checkpoints(StoppingFiles(0), folder(tmp_path), 2, still) for _ in range(2))
    begun = one.begin()
    other = [two.save(FILES, step=step) for step in (1, 2)]
    mine = one.save_begun(begun, FILES, step=3)
    assert {each.id for each in one.list().checkpoints} >= {mine.id, other[1].id}
    assert len({mine.id, *(each.id for each in other)}) == 3


def test_a_clock_that_is_behind_does_not_make_the_newest_the_oldest() -> None:
    files = memory()
    checkpoints(files, clock=Clock(1_900_000_000_000_000_000)).save(FILES, step=1)
    behind = checkpoints(files, clock=Clock(1_000_000_000_000_000_000), most=1)
    behind.save(FILES, step=2)
    latest = behind.latest()
    assert latest is not None and latest.step == 2 and latest.begun <= latest.complete


def test_a_storage_error_is_not_no_checkpoint() -> None:
    """Beginning from nothing would discard what is there."""
    files = FailingFiles()
    store = checkpoints(files)
    saved = store.save(FILES, step=1)
    for call in (store.load, store.latest, store.list):
        for failure in ("list", "read"):
            files.failures = {failure: 1}
            with pytest.raises(StorageFault, match="ConnectionResetError"):
                call()
    assert store.latest() == saved


@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_a_save_that_fails_leaves_the_one_before(attempt: int) -> None:
    """And nothing of itself."""
    files = FailingFiles()
    store = checkpoints(files, most=1)
    before = store.save(FILES, step=1)

    class FailsAt(FailingFiles):
        writes = 0

        def open(self, path, mode="rb", **more):  # type: ignore[no-untyped-def]
            if "w" in mode:
                self.writes += 1
                if self.writes == attempt:
                    raise OSError(28, "No space left on device")
            return super().open(path, mode, **more)

    full = FailsAt()
    full.store, full.pseudo_dirs = files.store, files.pseudo_dirs
    with pytest.raises(
        StorageFault, match=r"step 2 of ml/bert was not saved; those before it are kept: .*No space left"
    ):
        checkpoints(full, most=1).save(FILES, step=2)
    assert store.latest() == before and [each.id for each in store.list().checkpoints] == [before.id]
    assert len(files.ls("/base/ml/bert")) == 1


def changes_of_a_save() -> int:
    """How many changes to the disk a save makes, its clean-up included."""
    import tempfile

    with tempfile.TemporaryDirectory() as root:
        files = StoppingFiles(0)
        store = checkpoints(files, root, most=1)
        store.save(FILES, step=1)
        before = files.changes
        store.save(FILES, step=2)
        return files.changes - before


@pytest.mark.parametrize("stop_at", range(1, changes_of_a_save() + 1))
def test_a_process_that_ends_at_any_change_leaves_a_latest(tmp_path: Path, stop_at: int) -> None:
    """The one before until the manifest has its name, then the new one; each loads whole, and the next save works."""
    clock = Clock()
    before = checkpoints(StoppingFiles(0), folder(tmp_path), 1, clock).save(FILES, step=1)
    newer = {"model.npz": b"WEIGHTS", "optimizer/state": b"MOMENTS"}
    with pytest.raises(Stopped):
        checkpoints(StoppingFiles(stop_at), folder(tmp_path), 1, clock).save(newer, step=2)
    after = checkpoints(StoppingFiles(0), folder(tmp_path), 1, clock)
    loaded = after.load()
    assert loaded is not None
    renamed = any((tmp_path / "base/ml/bert").glob(f"*/{manifest.MANIFEST}")) and loaded.checkpoint.step == 2
    assert (loaded.checkpoint, dict(loaded.files)) == (before, FILES) or (renamed and loaded.files == newer)
    after.save(FILES, step=3)
    latest = after.latest()
    assert latest is not None and latest.step == 3 and len(after.list().checkpoints) == 1


def test_a_save_makes_more_than_a_dozen_changes() -> None:
    """So the table above stops in each: folders, both files, the manifest and its name, the clean-up."""
    assert changes_of_a_save() >= 14


@pytest.mark.parametrize(
    ("job", "said"), [("bert", "job name ''"), ("ml/a/b", "job name 'a/b'"), ("/bert", "job namespace ''")]
)
def test_a_job_is_namespace_and_name(job: str, said: str) -> None:
    with pytest.raises(SettingFault, match=said):
        Checkpoints.at("memory://x", job)


def test_nothing_is_stored_of_what_cannot_be_saved() -> None:
    files = memory()
    store = checkpoints(files)
    for bad in ({"files": {"a": "x"}}, {"files": {}}, {"files": FILES, "metadata": {"a": object()}}):
        with pytest.raises(SettingFault):
            store.save(bad["files"], step=1, metadata=bad.get("metadata"))  # type: ignore[arg-type]
    assert files.store == {}


def test_a_pods_environment_says_where() -> None:
    told = {
        "SUBLET_CHECKPOINT_URL": "memory://of-a-pod",
        "SUBLET_JOB_NAMESPACE": "ml",
        "SUBLET_JOB_NAME": "bert",
        "SUBLET_CHECKPOINT_MAX": "1",
    }
    store = Checkpoints.from_environment(told)
    saved = store.save(FILES, step=1)
    assert store.job == JOB and Checkpoints.at("memory://of-a-pod", "ml/bert").latest() == saved

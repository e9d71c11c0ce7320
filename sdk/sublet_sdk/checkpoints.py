"""Checkpoints of one job: save, load, latest, list, delete."""

from __future__ import annotations

import builtins
import io
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from sublet_sdk import manifest, settings
from sublet_sdk.faults import CorruptCheckpoint, NoCheckpoint, SettingFault, StorageFault
from sublet_sdk.manifest import MANIFEST, Checkpoint, JobKey, StoredFile
from sublet_sdk.retries import Retries
from sublet_sdk.settings import CheckpointSettings
from sublet_sdk.sources import BytesKept, Source, checked_sources
from sublet_sdk.storage import Storage, opened

PAGE = 1000
PARTIAL_KEPT_SECONDS = 86400.0
"""An upload that never completed is deleted after so long: until then it may be another writer's, under way."""
_LATEST_NS = 8 * 10**18
"""In the year 2223: no clock says so, and ids that count on from a later one soon had no room."""
_LARGEST_MANIFEST_BYTES = 64 << 20
_log = logging.getLogger("sublet_sdk")

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded:
    """A checkpoint with its files' bytes, whose checksums are right."""

    checkpoint: Checkpoint
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Page:
    """Part of the list, newest first. The rest begins after the id `next`, which is empty at the end."""

    checkpoints: tuple[Checkpoint, ...]
    next: str


class Checkpoints:
    """The checkpoints of a job in a storage. Several processes may save and load at a time."""

    def __init__(
        self, chosen: CheckpointSettings, storage: Storage | None = None, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.settings = chosen
        self._storage = storage or opened(chosen.url)
        self._now_ns = now_ns
        self._newest_seen_ns = 0
        self._looked = False
        self._begun_seconds: dict[int, float] = {}
        self.on_saved: Callable[[Checkpoint, float], None] | None = None
        """Called with each checkpoint once it is complete, by the thread that saved it, and with the Unix time by this
        machine's clock that its state is of."""

    @classmethod
    def at(cls, url: str, job: str, interval_seconds: float = 0.0, most: int = 0) -> Checkpoints:
        """Those of `job`, `namespace/name`, below a URL.

        :raises SettingFault: one of them cannot be used
        """
        namespace, _, name = job.partition("/")
        return cls(CheckpointSettings(url, JobKey(namespace, name), interval_seconds, most))

    @classmethod
    def from_environment(cls, variables: Mapping[str, str] = os.environ, retries: Retries | None = None) -> Checkpoints:
        """Those of the TrainingJob that this process is of.

        :raises SettingFault: a variable is absent or cannot be used
        """
        chosen = settings.from_environment(variables)
        return cls(chosen, opened(chosen.url, retries))

    @property
    def job(self) -> JobKey:
        """Whose they are."""
        return self.settings.job

    def save(
        self, files: Mapping[str, Source], *, step: int, epoch: int = 0, metadata: Mapping[str, Any] | None = None
    ) -> Checkpoint:
        """Stores the files, then the manifest, then deletes what is more than the newest `most`.

        A clean-up that fails is logged, and does not fail the save.

        :raises SettingFault: a file's name, the step or the metadata cannot be used; nothing is stored
        :raises StorageFault: the storage failed each attempt; the checkpoints before it are as they were
        """
        return self.save_begun(self.begin(), files, step=step, epoch=epoch, metadata=metadata)

    def begin(self) -> int:
        """The moment, in Unix nanoseconds, from which a later `save_begun` counts: after all that are stored."""
        now_ns = self._now_ns()
        if not self._looked:
            with suppress(StorageFault):  # The save that follows tells of a storage that fails.
                self._ids()
        # A clock that is behind the one of the node before must not make the newest the oldest.
        self._newest_seen_ns = max(now_ns, self._newest_seen_ns + 1)
        self._begun_seconds = {self._newest_seen_ns: now_ns / 1e9}
        return self._newest_seen_ns

    def save_begun(
        self,
        begun_ns: int,
        files: Mapping[str, Source],
        *,
        step: int,
        epoch: int = 0,
        metadata: Mapping[str, Any] | None = None,
    ) -> Checkpoint:
        """As `save`, of a state that was handed over at `begun_ns`."""
        sources = checked_sources(files, step, epoch)
        told = manifest.checked_metadata(metadata or {})
        checkpoint_id = manifest.new_id(begun_ns, secrets.token_hex(4))
        try:
            stored = {
                name: self._storage.write(self._name(checkpoint_id, name), source) for name, source in sources.items()
            }
            made = Checkpoint(
                id=checkpoint_id,
                job=self.job.text,
                step=step,
                epoch=epoch,
                size=sum(each.size for each in stored.values()),
                begun=begun_ns / 1e9,
                complete=max(self._now_ns(), begun_ns) / 1e9,
                files=stored,
                metadata=told,
            )
            text = manifest.encoded(made)
            self._storage.write_whole(self._name(checkpoint_id, MANIFEST), lambda: io.BytesIO(text))
        except StorageFault as fault:
            self._forget(checkpoint_id)
            raise StorageFault(
                f"checkpoint of step {step} of {self.job.text} was not saved; those before it are kept: {fault}"
            ) from fault
        if self.on_saved is not None:
            self.on_saved(made, self._begun_seconds.get(begun_ns, made.begun))
        self._clean_up(checkpoint_id)
        return made

    def latest(self) -> Checkpoint | None:
        """The newest complete one, None where there is none. Its files are not read.

        :raises StorageFault: the storage does not tell; that is not the same as none
        """
        return next(self._readable(self._ids()), None)

    def list(self, after: str = "", most: int = PAGE) -> Page:
        """Complete ones, newest first, from the one after the id `after` on, `most` at a time.

        :raises SettingFault: `after` is no id, or `most` is below 1
        :raises StorageFault: the storage does not tell
        """
        if most < 1:
            raise SettingFault("most", f"is {most}", "give 1 or more")
        ids = [each for each in self._ids() if not after or each < manifest.checked_id(after)]
        found: list[Checkpoint] = []
        for each in self._readable(ids):
            if len(found) == most:
                return Page(tuple(found), found[-1].id)
            found.append(each)
        return Page(tuple(found), "")

    def load(self, checkpoint_id: str = "") -> Loaded | None:
        """The checkpoint of that id; without one the newest whose files are as they were saved, None where none is.

        :raises NoCheckpoint: there is none of that id
        :raises CorruptCheckpoint: that one is corrupt; without an id, all are
        :raises StorageFault: the storage failed each attempt
        """
        return self._first_sound(checkpoint_id, self._read_files)

    def load_into(self, folder: Path, checkpoint_id: str = "") -> Checkpoint | None:
        """As `load`, with the files written below a folder instead of held in memory."""
        return self._first_sound(checkpoint_id, lambda found: self._copy_files(found, folder))

    def delete(self, checkpoint_id: str) -> None:
        """The manifest first, so that no part is taken for a whole. Nothing happens where there is none.

        :raises SettingFault: it is no id
        :raises StorageFault: the storage failed each attempt
        """
        self._storage.delete(self._name(manifest.checked_id(checkpoint_id), MANIFEST))
        self._storage.delete_folder(f"{self.job.text}/{checkpoint_id}")

    def _name(self, checkpoint_id: str, file: str) -> str:
        return f"{self.job.text}/{checkpoint_id}/{file}"

    def _ids(self) -> Sequence[str]:
        """Of all, complete or not, newest first."""
        ids = [each for each in reversed(self._storage.folders(self.job.text)) if manifest.is_id(each)]
        self._looked = True
        begun = (ns for each in ids if (ns := manifest.begun_ns(each)) < _LATEST_NS)
        self._newest_seen_ns = max(self._newest_seen_ns, next(begun, 0))
        return ids

    def _manifest(self, checkpoint_id: str) -> Checkpoint | None:
        """None where it is not complete, or gone."""
        text = BytesKept()
        try:
            self._storage.read(self._name(checkpoint_id, MANIFEST), text.opened, _LARGEST_MANIFEST_BYTES)
        except FileNotFoundError:
            return None
        return manifest.decoded(text.bytes, self.job, checkpoint_id)

    def _readable(self, ids: Sequence[str]) -> Iterator[Checkpoint]:
        for each in ids:
            try:
                found = self._manifest(each)
            except CorruptCheckpoint as fault:
                _log.warning("%s; the one before is looked at", fault)
                continue
            if found is not None:
                yield found

    def _first_sound(self, checkpoint_id: str, read: Callable[[Checkpoint], T]) -> T | None:
        if checkpoint_id:
            found = self._manifest(manifest.checked_id(checkpoint_id))
            if found is None:
                raise NoCheckpoint(f"{self.job.text} has no complete checkpoint {checkpoint_id}")
            return read(found)
        ids = self._ids()
        while (found_or_fault := self._first_read(ids, read)) is not None:
            if not isinstance(found_or_fault, CorruptCheckpoint):
                return found_or_fault
            # Another writer's clean-up may have deleted what was being read; then there are newer ones.
            again = self._ids()
            if again == ids:
                raise CorruptCheckpoint(
                    f"{self.job.text} has no checkpoint that can be read; delete them to begin from nothing. "
                    f"The newest: {found_or_fault}"
                )
            ids = again
        return None

    def _first_read(self, ids: Sequence[str], read: Callable[[Checkpoint], T]) -> T | CorruptCheckpoint | None:
        """What is read of the first that is sound; else what is wrong with the first; None where none is complete."""
        corrupt: CorruptCheckpoint | None = None
        for each in ids:
            try:
                found = self._manifest(each)
                if found is not None:
                    return read(found)
            except CorruptCheckpoint as fault:
                corrupt = corrupt or fault
                _log.warning("%s; the one before is used", fault)
        return corrupt

    def _read_files(self, found: Checkpoint) -> Loaded:
        files = {}
        for name, stored in found.files.items():
            kept = BytesKept()
            self._read_file(found, name, stored, kept.opened)
            files[name] = kept.bytes
        return Loaded(found, files)

    def _copy_files(self, found: Checkpoint, folder: Path) -> Checkpoint:
        """Each beside its place first: a corrupt one leaves what is there as it was."""
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".checkpoint-", dir=folder) as beside:
            for name, stored in found.files.items():
                target = Path(beside) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                self._read_file(found, name, stored, lambda target=target: target.open("wb"))  # type: ignore[misc]
            for name in found.files:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (Path(beside) / name).replace(folder / name)
        return found

    def _read_file(self, of: Checkpoint, name: str, wanted: StoredFile, sink: Callable[[], BinaryIO]) -> None:
        where = f"checkpoint {of.id} of {of.job} (step {of.step}) is corrupt: file {name}"
        try:
            found = self._storage.read(self._name(of.id, name), sink, wanted.size)
        except FileNotFoundError as fault:
            raise CorruptCheckpoint(f"{where} is absent") from fault
        if found.size != wanted.size:
            raise CorruptCheckpoint(f"{where} has not the {wanted.size} bytes that were saved")
        if found.sha256 != wanted.sha256:
            raise CorruptCheckpoint(f"{where} has SHA-256 {found.sha256}, saved was {wanted.sha256}")

    def _clean_up(self, saved: str) -> None:
        if not self.settings.most:
            return
        try:
            for each in self._surplus(saved):
                self.delete(each)
        except (StorageFault, OSError) as fault:
            _log.warning("old checkpoints of %s stay for now, the new one is saved: %s", self.job.text, fault)

    def _surplus(self, saved: str) -> Sequence[str]:
        """Complete ones beyond the newest, never the one just saved; and uploads that were given up."""
        kept = 0
        surplus: builtins.list[str] = []
        old_ns = self._now_ns() - int(PARTIAL_KEPT_SECONDS * 1e9)
        for each in self._ids():
            try:
                complete = self._manifest(each) is not None
            except CorruptCheckpoint:
                continue  # It may be of a later version of this package.
            kept += complete
            if (kept > self.settings.most if complete else manifest.begun_ns(each) < old_ns) and each != saved:
                surplus.append(each)
        return surplus

    def _forget(self, checkpoint_id: str) -> None:
        """What came of an upload that failed; later clean-ups find it otherwise."""
        try:
            self._storage.delete_folder(f"{self.job.text}/{checkpoint_id}")
        except (StorageFault, OSError) as fault:
            _log.info("a part of checkpoint %s of %s stays: %s", checkpoint_id, self.job.text, fault)

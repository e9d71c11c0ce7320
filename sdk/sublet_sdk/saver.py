"""Asynchronous save: the state is copied at once, and stored by a thread while training goes on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sublet_sdk.checkpoints import Checkpoints
from sublet_sdk.manifest import Checkpoint, checked_metadata
from sublet_sdk.sources import Source, checked_sources, copied


class AsynchronousSaver:
    """One save at a time. What the last one failed with is raised by the next call, once."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        self._checkpoints = checkpoints
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sublet-checkpoint")
        self._last: Future[Checkpoint] | None = None

    @property
    def saving(self) -> bool:
        """Whether a save is under way."""
        return self._last is not None and not self._last.done()

    def save(
        self, files: Mapping[str, Source], *, step: int, epoch: int = 0, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Begins a save, after waiting for one that is under way. Bytes are copied before this returns.

        :raises SettingFault: a file's name, the step or the metadata cannot be used
        :raises StorageFault: the save before this one failed; then this one is not begun
        """
        checked_sources(files, step, epoch)
        told, kept = checked_metadata(metadata or {}), copied(files)
        self.wait()
        begun = self._checkpoints.begin()
        self._last = self._thread.submit(
            self._checkpoints.save_begun, begun, kept, step=step, epoch=epoch, metadata=told
        )

    def wait(self) -> Checkpoint | None:
        """What the last save made, once it has ended; None where none was begun since the last call.

        :raises StorageFault: it failed
        """
        last, self._last = self._last, None
        return last.result() if last is not None else None

    def close(self) -> None:
        """Waits for the save under way, and ends the thread.

        :raises StorageFault: that save failed
        """
        try:
            self.wait()
        finally:
            self._thread.shutdown()

"""Session: a training loop that restores what was saved, saves when it is due, and once more on notice."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from sublet_sdk.agent_socket import AgentSocket
from sublet_sdk.checkpoints import Checkpoints, Loaded
from sublet_sdk.faults import SettingFault, StorageFault
from sublet_sdk.manifest import Checkpoint
from sublet_sdk.notice import NoticeSource, sources_here
from sublet_sdk.saver import AsynchronousSaver
from sublet_sdk.sources import Source

_AGAIN_SECONDS = 60.0
"""After a save that failed the next is due so soon, or after the interval if that is shorter."""
_PAUSE_SECONDS = 1.0
"""Between two saves on notice; a storage that failed may have refused at once."""
_log = logging.getLogger("sublet_sdk")


class Session:
    """A context manager around a training loop.

    `capture` returns the state as files. It is called by `step`, when a save is due or a notice has come, and at the
    end of the block if a notice came since: between two steps, when the state is whole. A save that is due is
    asynchronous; if the storage fails it is logged, kept in `problem` and made again soon, and training goes on. The
    save on notice is synchronous, tried again until the deadline that came with the notice, and raises its fault. A
    process that does not save (`saves=False`, for all but one of the workers of a job with equal states) restores and
    is told to stop all the same.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        capture: Callable[[], Mapping[str, Source]],
        *,
        notices: Sequence[NoticeSource] | None = None,
        saves: bool = True,
        monotonic: Callable[[], float] = time.monotonic,
        unix_time: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.checkpoints = checkpoints
        self.problem: StorageFault | None = None
        """What the last save that was due failed with; None once one has succeeded."""
        self._capture = capture
        self._given = notices
        self._notices: Sequence[NoticeSource] = ()
        self._saves = saves
        self._monotonic = monotonic
        self._unix_time = unix_time
        self._sleep = sleep
        self._saver: AsynchronousSaver | None = None
        self._due_seconds = float("inf")
        self._told: tuple[int, int, Mapping[str, Any]] | None = None
        self._saved_step = -1
        self._notice = ""

    @classmethod
    def from_environment(
        cls,
        capture: Callable[[], Mapping[str, Source]],
        *,
        saves: bool = True,
        variables: Mapping[str, str] = os.environ,
    ) -> Self:
        """The session of the TrainingJob that this process is of.

        :raises SettingFault: a variable is absent or cannot be used
        """
        return cls(Checkpoints.from_environment(variables), capture, saves=saves)

    def __enter__(self) -> Self:
        self._notices = sources_here() if self._given is None else self._given
        self.checkpoints.on_saved = self._tell_saved
        self._saver = AsynchronousSaver(self.checkpoints)
        self._be_due(self.checkpoints.settings.interval_seconds)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            # After an exception the state may be half of a step: what was saved before is worth more.
            if kind is None and self.should_stop():
                self._save_on_notice()
        finally:
            self._end()

    def restore(self) -> Loaded | None:
        """The newest checkpoint whose files are sound, None where there is none yet.

        :raises StorageFault: the storage does not tell; beginning from nothing would discard what is there
        :raises CorruptCheckpoint: there are checkpoints, and none can be read
        """
        found = self.checkpoints.load()
        if found is not None:
            self._saved_step = found.checkpoint.step
            _log.info("%s goes on from step %d", self.checkpoints.job.text, found.checkpoint.step)
        else:
            where = self.checkpoints.settings.url
            _log.info("%s begins from the beginning: %s has no checkpoint of it", self.checkpoints.job.text, where)
        return found

    def step(self, step: int, epoch: int = 0, metadata: Mapping[str, Any] | None = None) -> None:
        """Tells that `step` steps are done; saves if that is due, or if a notice has come.

        :raises SettingFault: what `capture` returns, or a number, cannot be used
        :raises StorageFault: the save on notice failed
        """
        self._told = (step, epoch, metadata or {})
        self._hear_of_last()
        if self.should_stop():
            self._save_on_notice()
        elif self._saves and self._monotonic() >= self._due_seconds and not self._open.saving:
            self._be_due(self.checkpoints.settings.interval_seconds)
            self._open.save(self._capture(), step=step, epoch=epoch, metadata=metadata)

    def should_stop(self) -> bool:
        """Whether a notice has come; it may be taken back (a file that is deleted), except SIGTERM."""
        reason = next((said for each in self._notices if (said := each.noticed())), "")
        if reason and not self._notice:
            _log.warning("%s is to stop: %s", self.checkpoints.job.text, reason)
        self._notice = reason
        return bool(reason)

    @property
    def reason(self) -> str:
        """Why the process is to stop, as the last `should_stop` heard it; empty if it is not."""
        return self._notice

    def save(self) -> Checkpoint | None:
        """Saves what was told last, and returns when it is complete; None if this process does not save.

        :raises SettingFault: no step was told yet
        :raises StorageFault: the storage failed each attempt
        """
        if self._told is None:
            raise SettingFault("session", "was told of no step", "call step() before save()")
        if not self._saves:
            return None
        self._settle()
        step, epoch, metadata = self._told
        made = self.checkpoints.save(self._capture(), step=step, epoch=epoch, metadata=metadata)
        self._saved_step, self.problem = step, None
        return made

    @property
    def _open(self) -> AsynchronousSaver:
        if self._saver is None:
            raise SettingFault("session", "is not open", "use it as a context manager: with session: ...")
        return self._saver

    def _save_on_notice(self) -> None:
        """Once for each step: a second would only lose time. A storage that fails may be back before the deadline."""
        self._settle()
        while self._told is not None and self._told[0] != self._saved_step and self.should_stop():
            try:
                self.save()
                return
            except StorageFault as fault:
                left = (self._deadline_seconds() or 0.0) - self._unix_time()
                if left <= _PAUSE_SECONDS:
                    raise
                self.problem = fault
                _log.warning("%s; tried again, %.0f s are left", fault, left)
                self._sleep(_PAUSE_SECONDS)

    def _deadline_seconds(self) -> float | None:
        """The latest that anybody told."""
        told = (getattr(each, "deadline_seconds", None) for each in self._notices)
        return max((each for each in told if each is not None), default=None)

    def _hear_of_last(self) -> None:
        """What became of a save that has ended."""
        if not self._open.saving:
            self._settle()

    def _settle(self) -> None:
        """Waits for the save under way; a failure is kept and told, since the state is still here to be saved again."""
        try:
            made = self._open.wait()
        except StorageFault as fault:
            self.problem = fault
            _log.warning("%s", fault)
            self._be_due(min(self.checkpoints.settings.interval_seconds, _AGAIN_SECONDS))
            return
        if made is not None:
            self._saved_step, self.problem = made.step, None

    def _tell_saved(self, made: Checkpoint, begun_seconds: float) -> None:
        for each in self._notices:
            if isinstance(each, AgentSocket):
                each.saved(made, begun_seconds)

    def _be_due(self, seconds: float) -> None:
        self._due_seconds = self._monotonic() + seconds if seconds else float("inf")

    def _end(self) -> None:
        self._settle()
        self._open.close()
        self._saver = None
        self.checkpoints.on_saved = None
        if self._given is None:
            for each in self._notices:
                each.close()

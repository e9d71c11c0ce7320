"""State that outlives the process: changes are committed to a state directory before they are acknowledged.

They are committed together: while one commit runs, in a thread of its own, the next ones gather. What a client was
told survives the end of the process, kill -9 included; a loss of power may take the last seconds with it (SQLite's
`synchronous=NORMAL`) but never leaves a state that was not one. Readers and watchers may see a change a moment before
it is committed.

Revisions are reserved in advance: after any end, the next run starts above every revision this one gave out, whatever
the clock says.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from concurrent.futures import ThreadPoolExecutor

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.storage.records import Record
from embedded.apiserver.storage.state_directory import Row, StateDirectory

_log = logging.getLogger(__name__)
_RESERVED = 1_000_000  # revisions reserved at a time


class _Batch:
    """Changes that are committed together; the outcome is what went wrong (empty: nothing), None before."""

    def __init__(self) -> None:
        self.changes: dict[Row, bytes | None] = {}
        self.revision = 0
        self._outcome: str | None = None
        self._waiting: list[asyncio.Future[str]] = []

    def resolve(self, outcome: str) -> None:
        self._outcome = outcome
        for future in self._waiting:
            if not future.done():
                future.set_result(outcome)

    async def outcome(self) -> str:
        if self._outcome is None:
            self._waiting.append(asyncio.get_running_loop().create_future())
            return await self._waiting[-1]
        return self._outcome


class Journal:
    """Writes down the changes of a store. On a full disk it first finishes what was accepted, then refuses more."""

    def __init__(self, directory: StateDirectory, retry_seconds: float = 1.0) -> None:
        self._directory = directory
        self._retry_seconds = retry_seconds
        # One thread: commits are in order, and the event loop goes on meanwhile.
        self._thread = ThreadPoolExecutor(1, "journal")
        self._gathering = _Batch()
        self._running = _Batch()
        self._committing: asyncio.Task[None] | None = None
        self._failure = ""

    @property
    def least_revision(self) -> int:
        return self._directory.reserved

    def begin(self, revision: int) -> None:
        """The revision this run starts at."""
        self._directory.reserve(revision + _RESERVED)

    def admit(self) -> None:
        """Raises 500 while the disk takes no changes: one that cannot be kept must not happen."""
        if self._failure:
            raise _refusal(f"no change is accepted: {self._failure}")

    def kept(self, type_id: str, record: Record) -> None:
        self._change((type_id, record.namespace, record.name), record.body, record.revision)

    def gone(self, type_id: str, record: Record) -> None:
        self._change((type_id, record.namespace, record.name), None, record.revision)

    def _change(self, row: Row, body: bytes | None, revision: int) -> None:
        self._gathering.changes[row] = body
        self._gathering.revision = revision
        if self._committing is None:
            self._start()

    def _start(self) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # changes before the loop runs are committed with the first one after, or by `close`
            return
        self._committing = loop.create_task(self._commit_all())

    async def settled(self) -> None:
        """Return when all changes so far are committed; raises 500 where one cannot be."""
        if self._committing is None and self._gathering.changes:
            self._start()
        if self._committing is None:
            return
        batch = self._gathering if self._gathering.changes else self._running
        if failure := await batch.outcome():
            raise _refusal(f"the change was made, but is not on disk yet: {failure}")

    async def _commit_all(self) -> None:
        try:
            while self._gathering.changes:
                self._running, self._gathering = self._gathering, _Batch()
                await self._commit(self._running)
        finally:
            self._committing = None

    async def _commit(self, batch: _Batch) -> None:
        failure = "the server is stopping"
        try:
            failure = await self._attempt(batch)
            if failure:
                self._failure = failure
                _log.error("state: %s", failure)
                self._give_room()
                failure = await self._attempt(batch)
        finally:  # whoever waits is told, whatever becomes of this task
            batch.resolve(failure)
        while failure:
            await asyncio.sleep(self._retry_seconds)
            failure = await self._attempt(batch)
        await self._recover()

    async def _attempt(self, batch: _Batch) -> str:
        """Commit a batch; what went wrong, or nothing."""
        reserved = self._directory.reserved
        if batch.revision + _RESERVED // 2 > reserved:
            reserved = batch.revision + _RESERVED
        try:
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._directory.commit, batch.changes, reserved
            )
        except (sqlite3.Error, OSError) as error:
            return str(error)
        return ""

    def _give_room(self) -> None:
        try:
            self._directory.give_room()
        except OSError as error:  # a file system that is read-only by now, say: the same refusal as a full one
            _log.error("state: the room kept back cannot be given up: %s", error)

    async def _recover(self) -> None:
        """After a failure: accept changes again once there is room to finish the next one that fails."""
        while self._failure:
            try:
                self._directory.keep_room()
                self._failure = ""
            except OSError as error:
                self._failure = str(error)
                await asyncio.sleep(self._retry_seconds)

    async def close(self) -> None:
        """Commit what is left and let others open the directory."""
        if self._committing is not None:
            self._committing.cancel()
            await asyncio.wait([self._committing])
        self._thread.shutdown()
        try:
            self._directory.commit(self._unfinished(), self._directory.reserved)
        except sqlite3.Error as error:
            _log.error("state: the last changes are lost: %s", error)
        self._directory.close()

    def _unfinished(self) -> dict[Row, bytes | None]:
        return {**self._running.changes, **self._gathering.changes}


def _refusal(why: str) -> StatusError:
    return StatusError(500, "InternalError", f"Internal error occurred: the state directory fails: {why}")

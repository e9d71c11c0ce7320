"""Following a TrainingJob: one line for each change, and the log of its first pod, until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from cli.progress_text import counts_text, duration
from jobs.controllers.job_progress import job_progress
from kube import objects
from kube.client import KubeClient, path_of
from kube.dialects.jobs import reading
from model.fault import KubernetesFault
from model.job import labels
from model.job.job import JobDialect
from model.job.status import JobPhase
from model.queue import JobProgress

RESOURCE = reading.RESOURCES[JobDialect.TRAINING]
_EVERY_SECONDS = 1.0
_LOG_IDLE_SECONDS = 86_400.0
"""A program that trains may say nothing for long."""
_LAST_WORDS_SECONDS = 5.0
_NOT_FOUND, _BAD_REQUEST, _SERVER_ERROR = 404, 400, 500
_FIRST = "0"
_BEGUN = ("Running", "Succeeded", "Failed")


class Pods(msgspec.Struct, frozen=True):
    items: list[objects.Pod] = []


class Ended(msgspec.Struct, frozen=True):
    """How it went; without `progress` somebody deleted it meanwhile."""

    progress: JobProgress | None
    succeeded: bool = False


class Follower:
    """`say` gets a line for people, `log` one of the program's own."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        say: Callable[[str], None],
        log: Callable[[str], None],
        *,
        every_seconds: float = _EVERY_SECONDS,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._say = say
        self._log = log
        self._every_seconds = every_seconds
        self._uid = ""
        self._told = ""
        self._read: set[str] = set()
        self._reading: asyncio.Task[None] | None = None

    async def follow(self) -> Ended:
        """Returns once it has ended, with all of its log told. Raises KubernetesFault where the API server refuses; one
        that does not answer is asked again, for as long as it takes.
        """
        silent = False
        try:
            while True:
                try:
                    ended = await self._look()
                    silent = False
                except KubernetesFault as fault:
                    if fault.status and fault.status < _SERVER_ERROR:
                        raise
                    if not silent:
                        self._say(f"{fault}; the job goes on, asking again")
                    ended, silent = None, True
                if ended is not None:
                    return ended
                await asyncio.sleep(self._every_seconds)
        finally:
            if self._reading is not None:
                self._reading.cancel()

    async def _look(self) -> Ended | None:
        """None while it goes on."""
        source = await self._source()
        if source is None or self._uid not in ("", source.metadata.uid):
            return Ended(None)
        self._uid, status = source.metadata.uid, reading.status(source)
        progress = job_progress(reading.job(source), status)
        self._tell(progress)
        if self._reading is None or self._reading.done():
            self._reading = await self._next_log()
        if not status.phase.ended:
            return None
        await self._rest()
        return Ended(progress, succeeded=status.phase is JobPhase.SUCCEEDED)

    async def _source(self) -> objects.TrainingJob | None:
        path = path_of(RESOURCE, namespace=self._namespace, name=self._name)
        try:
            return await self._client.get(path, objects.TrainingJob)
        except KubernetesFault as fault:
            if fault.status != _NOT_FOUND:
                raise
            return None

    def _tell(self, progress: JobProgress) -> None:
        line = progress_line(self._name, progress)
        if line != self._told:
            self._told = line
            self._say(line)

    async def _next_log(self) -> asyncio.Task[None] | None:
        """Reads the first pod's log, of each pod that is first once."""
        pod = await self._first_pod()
        if pod is None or pod.metadata.uid in self._read or pod.status.phase not in _BEGUN:
            return None
        self._read.add(pod.metadata.uid)
        return asyncio.create_task(self._tail(pod.metadata))

    async def _first_pod(self) -> objects.Pod | None:
        path = path_of("v1/pods", namespace=self._namespace)
        found = await self._client.get(path, Pods, labelSelector=f"{labels.JOB_UID}={self._uid}")
        first = (pod for pod in found.items if (pod.metadata.annotations or {}).get(labels.RANK) == _FIRST)
        return min(first, key=lambda pod: pod.metadata.name, default=None)

    async def _tail(self, pod: objects.Metadata) -> None:
        path = path_of("v1/pods", namespace=self._namespace, name=pod.name, subresource="log")
        try:
            async for line in self._client.stream(path, {"follow": "true"}, _LOG_IDLE_SECONDS):
                self._log(line.decode(errors="replace"))
        except KubernetesFault as fault:
            if fault.status == _BAD_REQUEST:
                self._read.discard(pod.uid)  # its container is not there yet
            elif fault.status != _NOT_FOUND:
                self._say(f"the log of pod {pod.name} cannot be read on: {fault}")

    async def _rest(self) -> None:
        """What a program said last may come after the word that it has ended."""
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=_LAST_WORDS_SECONDS)


def progress_line(name: str, progress: JobProgress) -> str:
    """`bert: Queued; worker 2 pending; waits: …`."""
    pods = "; ".join(f"{task} {counts_text(counts)}" for task, counts in progress.tasks.items() if any(counts.values()))
    retries = f"{progress.failures} of {progress.most_failures} failures" if progress.failures else ""
    evictions = f"{progress.evictions} evictions" if progress.evictions else ""
    why = progress.message if progress.message != progress.reason else ""
    parts = (progress.phase, pods, retries, evictions, why)
    return f"{name}: {'; '.join(part for part in parts if part)}"


def end_line(name: str, ended: Ended) -> str:
    """How it went, and how long it took."""
    if ended.progress is None:
        return f"{name} was deleted"
    took = ended.progress.ended_seconds - ended.progress.created_seconds
    return f"{name} {ended.progress.phase.lower()} after {duration(took)}"

"""Evictor: asks the API server for the end of pods, tells each pod why, and keeps every answer.

Works in its own task, so that a slow or absent API server never delays a tick. What must survive a restart is on the
disk before the first request about it leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import structlog

from agent.core.evict.eviction_request import (
    EvictionOutcome,
    EvictionRecord,
    EvictionRequest,
    EvictionRequestKind,
    OutcomeKind,
)
from agent.core.evict.messages import ANNOTATION, annotation, kill_message, node_message, pod_message
from agent.core.evict.request_queue import LONGEST_SECONDS, QueuedRequest, RequestQueue
from agent.core.limit.watch import Kill
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.sublet.preemption_notice import ANNOTATION_STANDING_NOTICE, notice_text, withdrawal
from kube.events import EventRecorder, ObjectRef
from model.explain import sentence
from model.fault import KubernetesFault
from model.pod.colocation import StandingNotice
from model.reason import Reason, words
from model.report import PreemptionNotice

log = structlog.get_logger()

_IN_FLIGHT = 4
_TIMEOUT_SECONDS = 10.0
_ANNOTATION_SECONDS = 3.0
"""An eviction waits no longer for words about it, which a webhook may keep from being answered."""
_KEPT_OUTCOMES = 256
_KEPT_WORDS = 1024
_TOLD = (OutcomeKind.NOTIFIED, OutcomeKind.EVICTED, OutcomeKind.BLOCKED, OutcomeKind.SPARED)
_KILLED, _DRY = "killed", "dry_run"


class EvictorContext(msgspec.Struct, frozen=True):
    """What the evictor needs beside the API server.

    `notify` tells the pod over its socket, `withdraw` (uid) takes that back; `save` has the record on the
    disk when it returns, or raises OSError, and is called in a thread of its own.
    """

    events: EventRecorder
    node: Callable[[], ObjectRef]
    notify: Callable[[PreemptionNotice], None]
    withdraw: Callable[[str], None]
    save: Callable[[EvictionRecord], None]
    seconds: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


class ApiEvictor:
    """`submit` and `drain` are the tick's and never wait; `run` does the work. `saved` is what the disk holds already.

    With `dry` nothing is saved or sent: each pod and reason is logged once.
    """

    def __init__(
        self, client: KubeClient, around: EvictorContext, *, dry: bool = False, saved: EvictionRecord | None = None
    ) -> None:
        self._client = client
        self._around = around
        self._dry = dry
        self._saved = self._record = saved or EvictionRecord()
        self._queue = RequestQueue()
        # Requests to notify that are not safe on the disk yet; one in the queue has been told, it lacks the annotation.
        self._notices = RequestQueue()
        self._in_flight: set[str] = set()
        self._wake = asyncio.Event()
        self._outcomes: deque[EvictionOutcome] = deque(maxlen=_KEPT_OUTCOMES)
        self._checkpointed: set[str] = set()
        self._would_evict: dict[tuple[str, Reason], None] = {}
        self._evictions: Counter[tuple[str, str]] = Counter()
        self._save_error = ""
        self.dropped = 0
        self.save_failures = 0
        self.retries = 0

    @property
    def evictions(self) -> Mapping[tuple[str, str], int]:
        """How many, by reason and outcome; outcomes beside OutcomeKind's are `killed` and `dry_run`."""
        return self._evictions

    @property
    def waiting(self) -> int:
        """Requests the API server has not answered yet."""
        return len(self._notices) + len(self._queue) + len(self._in_flight)

    def submit(self, requests: tuple[EvictionRequest, ...], record: EvictionRecord) -> None:
        """Queue the requests; none leaves before `record` is safe on the disk."""
        if self._dry:
            for request in requests:
                self._say_only(request)
            return
        self._record = record
        for request in requests:
            self._notices.withdraw(request.uid)
            if request.kind is EvictionRequestKind.SPARE:
                self._around.withdraw(request.uid)
            self._put(request, self._notices if request.kind is EvictionRequestKind.NOTIFY else self._queue)
        if requests or record != self._saved:
            self._wake.set()

    def drain(self) -> tuple[EvictionOutcome, ...]:
        """What came of requests since the last call, oldest first."""
        taken = tuple(self._outcomes)
        self._outcomes.clear()
        self._checkpointed.clear()
        return taken

    def checkpointed(self, uid: str, state_seconds: float) -> None:
        """The pod has reported a checkpoint of its state at that time (Unix seconds); once a tick is enough.

        Of interest where the pod was told to go before: what it lost since an older state it is to save yet.
        """
        victim = self._record.pending.get(uid)
        if victim is None or victim.notified_until_seconds is None or uid in self._checkpointed:
            return
        if state_seconds < victim.since_seconds:
            return
        self._checkpointed.add(uid)
        self._outcomes.append(EvictionOutcome(uid, OutcomeKind.CHECKPOINTED, self._around.seconds()))

    def record_kill(self, kill: Kill) -> None:
        """Tell pod and node what the last resort did; call it from the event loop."""
        victim, reason, text = kill.victim, Reason.MEMORY_LAST_RESORT, kill_message(kill)
        self._evictions[reason.value, _KILLED] += 1
        log.warning("killed on the spot", pod=f"{victim.namespace}/{victim.name}", text=text)
        pod = ObjectRef(kind="Pod", name=victim.name, namespace=victim.namespace, uid=victim.uid)
        self._around.events.record(pod, reason.value, text, warning=True)
        about_node = f"Pod {victim.namespace}/{victim.name}: {text}"
        self._around.events.record(self._around.node(), reason.value, about_node, warning=True)

    async def run(self) -> None:
        """Never returns."""
        self._in_flight.clear()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._wake.clear()
                if await self._record_is_safe():
                    self._tell_notices()
                    self._start(tasks)
                await self._rest()

    async def _record_is_safe(self) -> bool:
        """The newest record is on the disk; where that failed every request has failed with it."""
        while (record := self._record) != self._saved:
            try:
                await asyncio.to_thread(self._around.save, record)
            except OSError as error:
                self._save_failed(error)
                return False
            self._saved, self._save_error = record, ""
        return True

    def _save_failed(self, error: OSError) -> None:
        text = f"the state file cannot be written: {error.strerror or error}"
        self.save_failures += 1
        if text != self._save_error:
            log.error("nothing is evicted", error=text, effect="a restart would forget it; tried again each tick")
            self._save_error = text
        for request in self._notices.clear():
            self._give_up(request, text, told=False)
        for request in self._queue.clear():
            self._give_up(request, text)

    def _tell_notices(self) -> None:
        """By the pod's own socket at once; annotation and Event follow when the API server can be reached."""
        for request in self._notices.clear():
            deadline = request.decision.at_seconds if request.deadline_seconds is None else request.deadline_seconds
            self._around.notify(PreemptionNotice(request.uid, deadline, words(request.decision.reason)))
            self._finish(request, OutcomeKind.NOTIFIED)
            self._put(request, self._queue)

    def _put(self, request: EvictionRequest, queue: RequestQueue) -> None:
        if (lost := queue.put(request, self._around.monotonic())) is not None:
            self.dropped += 1
            self._give_up(lost, "too many requests wait: a newer one took the place", told=queue is self._queue)

    def _start(self, tasks: asyncio.TaskGroup) -> None:
        now = self._around.monotonic()
        for request in self._queue.expire(now):
            self._give_up(request, f"the API server did not take it within {LONGEST_SECONDS:.0f} s")
        for waiting in self._queue.take(now, self._in_flight, _IN_FLIGHT - len(self._in_flight)):
            self._in_flight.add(waiting.request.uid)
            tasks.create_task(self._carry_out(waiting))

    async def _rest(self) -> None:
        now = self._around.monotonic()
        moment = self._queue.next_change(now)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if moment is None else moment - now):
                await self._wake.wait()

    async def _carry_out(self, waiting: QueuedRequest) -> None:
        request = waiting.request
        try:
            if request.kind is EvictionRequestKind.SPARE:
                await self._correct(request, OutcomeKind.SPARED)
                self._finish(request, OutcomeKind.SPARED)
                return
            await self._explain(request)
            if request.kind is EvictionRequestKind.EVICT:
                await self._evict(request)
                self._finish(request, OutcomeKind.EVICTED)
        except KubernetesFault as fault:
            await self._settle(waiting, fault)
        finally:
            self._in_flight.discard(request.uid)
            self._wake.set()

    async def _explain(self, request: EvictionRequest) -> None:
        """Annotate the pod. Whatever fails of that, a webhook as well, does not keep the node short of memory."""
        try:
            await self._annotate(request)
        except KubernetesFault as fault:
            verdict = _verdict(fault)
            if verdict is OutcomeKind.GONE or (verdict is None and request.kind is EvictionRequestKind.NOTIFY):
                raise
            log.warning("pod not annotated", pod=f"{request.namespace}/{request.name}", error=str(fault))

    async def _annotate(self, request: EvictionRequest, outcome: OutcomeKind | None = None) -> None:
        """With the uid in the patch a pod of the same name that was made since is refused, not touched."""
        annotations = {ANNOTATION: annotation(request, outcome)}
        if request.kind is EvictionRequestKind.NOTIFY and outcome is None and request.notice is not None:
            annotations[ANNOTATION_STANDING_NOTICE] = notice_text(self._signed(request.notice))
        body = {"metadata": {"uid": request.uid, "annotations": annotations}}
        await self._send("PATCH", request, "", body, PatchKind.MERGE.value, _ANNOTATION_SECONDS)

    def _signed(self, notice: StandingNotice) -> StandingNotice:
        return msgspec.structs.replace(notice, by=f"agent of node {self._around.node().name}")

    async def _hide(self, request: EvictionRequest) -> None:
        """The pod is told no more; a notice of another, such as the scheduler's, stays."""
        if request.notice is None:
            return
        try:
            body = withdrawal(self._signed(request.notice), request.uid)
            await self._send("PATCH", request, "", body, PatchKind.JSON.value, _ANNOTATION_SECONDS)
        except KubernetesFault as fault:
            if fault.status not in (404, 422):
                raise

    async def _evict(self, request: EvictionRequest) -> None:
        options: dict[str, Any] = {"preconditions": {"uid": request.uid}}
        if request.grace_seconds is not None:
            options["gracePeriodSeconds"] = request.grace_seconds
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": request.name, "namespace": request.namespace},
            "deleteOptions": options,
        }
        await self._send("POST", request, "eviction", body, "application/json", _TIMEOUT_SECONDS)

    async def _send(
        self, method: str, request: EvictionRequest, subresource: str, body: Any, content_type: str, seconds: float
    ) -> None:
        path = path_of("v1/pods", namespace=request.namespace, name=request.name, subresource=subresource)
        content = msgspec.json.encode(body)
        await self._client.request(method, path, body=content, content_type=content_type, timeout_seconds=seconds)

    async def _settle(self, waiting: QueuedRequest, fault: KubernetesFault) -> None:
        request, kind = waiting.request, _verdict(fault)
        if kind is None:
            self.retries += 1
            log.info("request waits", pod=f"{request.namespace}/{request.name}", error=str(fault))
            self._queue.retry(waiting, self._around.monotonic(), fault.retry_after_seconds)
            return
        self._finish(request, kind, fault.what, fault.retry_after_seconds)
        if kind is not OutcomeKind.GONE:
            await self._correct(request, kind)

    async def _correct(self, request: EvictionRequest, outcome: OutcomeKind) -> None:
        """The annotations of a pod that lives on say so."""
        try:
            await self._hide(request)
            await self._annotate(request, outcome)
        except KubernetesFault as fault:
            log.info("annotation not corrected", pod=f"{request.namespace}/{request.name}", error=str(fault))

    def _give_up(self, request: EvictionRequest, detail: str, told: bool = True) -> None:
        """A notice that was `told` to the pod lacks but its annotation, which is no failure to act on."""
        if request.kind is EvictionRequestKind.NOTIFY and told:
            log.info("pod not annotated", pod=f"{request.namespace}/{request.name}", error=detail)
        else:
            self._finish(request, OutcomeKind.FAILED, detail)

    def _finish(
        self, request: EvictionRequest, kind: OutcomeKind, detail: str = "", retry_after_seconds: float = 0.0
    ) -> None:
        """Keep the outcome, count it, say it in the log and in Events."""
        reason = request.decision.reason.value
        self._evictions[reason, kind.value] += 1
        self._outcomes.append(EvictionOutcome(request.uid, kind, self._around.seconds(), detail, retry_after_seconds))
        say = log.warning if kind is OutcomeKind.FAILED else log.info
        say("eviction", outcome=kind.value, text=sentence(request.decision), detail=detail)
        if kind in _TOLD:
            pod = ObjectRef(kind="Pod", name=request.name, namespace=request.namespace, uid=request.uid)
            self._around.events.record(pod, reason, pod_message(request, kind, detail), warning=True)
            self._around.events.record(self._around.node(), reason, node_message(request, kind, detail), warning=True)

    def _say_only(self, request: EvictionRequest) -> None:
        key = (request.uid, request.decision.reason)
        if key in self._would_evict:
            return
        self._would_evict[key] = None
        if len(self._would_evict) > _KEPT_WORDS:
            del self._would_evict[next(iter(self._would_evict))]
        self._evictions[request.decision.reason.value, _DRY] += 1
        log.info("would evict", kind=request.kind.value, text=sentence(request.decision))


def _verdict(fault: KubernetesFault) -> OutcomeKind | None:
    """What an answer means for the request; None: it may go better in a moment.

    Another uid is a conflict to the Eviction API and an immutable field to a patch. An overloaded server's 429 is plain
    text, without a reason. Source: Kubernetes pkg/registry/core/pod/storage/eviction.go.
    """
    what = fault.what
    is_other_pod = (fault.status == 409 and "UID in" in what) or (fault.status == 422 and "metadata.uid" in what)
    if fault.status == 404 or is_other_pod:
        return OutcomeKind.GONE
    if (fault.status == 429 and fault.reason) or "more than one PodDisruptionBudget" in what:
        return OutcomeKind.BLOCKED
    may_pass = fault.status in (0, 401, 409, 429) or fault.status >= 500
    return None if may_pass else OutcomeKind.FAILED

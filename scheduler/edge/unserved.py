"""Events on objects that are kept and not acted upon: queues and jobs of other systems, and kinds of ours to come.

Only where the definition is ours: Kueue and Volcano bring their own, and act on their objects. A kind that is not
installed costs one small question a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec
import structlog

from kube import objects
from kube.client import KubeClient, path_of
from kube.dialects.unserved import KINDS, STORED_ONLY, UnservedKind, kind_sentence
from kube.events import EventRecorder, ObjectRef
from kube.informer import Change, ChangeKind, Informer
from model.fault import KubernetesFault
from model.reason import Reason
from scheduler.ports import Clock

log = structlog.get_logger()

_LOOK_SECONDS = 60.0
_AGAIN_SECONDS = 1800.0
"""An API server forgets Events after an hour."""
_MOST_TOLD = 100
"""Objects of a kind that carry an Event; beyond that one line in the log says how many there are."""
_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"
_NOT_FOR_US = (403, 404)


class _Object(msgspec.Struct, frozen=True):
    metadata: objects.Metadata = objects.Metadata()


class UnservedKinds:
    """`run` looks for definitions of ours and follows their objects, while `leading`."""

    def __init__(
        self,
        client: KubeClient,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        clock: Clock,
        kinds: Iterable[UnservedKind] = KINDS,
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        self._client = client
        self._look_seconds = look_seconds
        self._followed = {kind: _Followed(client, recorder, leading, clock, kind) for kind in kinds if kind.stored}

    async def run(self) -> None:
        """Never returns."""
        async with asyncio.TaskGroup() as group:
            while True:
                for kind, followed in self._followed.items():
                    followed.switch(await self._ours(kind), group)
                    followed.tell_again()
                await asyncio.sleep(self._look_seconds)

    async def _ours(self, kind: UnservedKind) -> bool | None:
        """Whether its definition is there and marked as ours; None where that cannot be told now."""
        try:
            found = await self._client.get(path_of(_DEFINITIONS, name=kind.definition), _Object)
        except KubernetesFault as fault:
            return False if fault.status in _NOT_FOR_US else None
        return (found.metadata.annotations or {}).get(STORED_ONLY) == "true"


class _Followed:
    """The objects of one kind, and when each was told of."""

    def __init__(
        self,
        client: KubeClient,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        clock: Clock,
        kind: UnservedKind,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._leading = leading
        self._clock = clock
        self._kind = kind
        self._told: dict[str, float] = {}
        self._informer: Informer[_Object] | None = None
        self._task: asyncio.Task[None] | None = None
        self._many = False

    def switch(self, ours: bool | None, group: asyncio.TaskGroup) -> None:
        """Follow the kind, or stop following it; None leaves it as it is."""
        if ours and self._task is None:
            self._informer = Informer(self._client, self._kind.resource, _Object, on_change=self._changed)
            self._task = group.create_task(self._informer.run())
        elif ours is False and self._task is not None:
            self._task.cancel()
            self._task = self._informer = None
            self._told.clear()

    def tell_again(self) -> None:
        """Those whose Event would soon be forgotten, and those there was no room for."""
        for item in sorted(self._informer.items.values(), key=_name) if self._informer else ():
            self._tell(item)

    def _changed(self, change: Change[_Object]) -> None:
        if change.kind is ChangeKind.DELETED:
            self._told.pop(change.object.metadata.uid, None)
        else:
            self._tell(change.object)

    def _tell(self, item: _Object) -> None:
        metadata, now = item.metadata, self._clock()
        known = self._told.get(metadata.uid)
        if not self._leading() or (known is not None and now - known < _AGAIN_SECONDS):
            return
        if known is None and len(self._told) >= _MOST_TOLD:
            if not self._many:
                log.warning("more objects than carry an Event", kind=self._kind.definition, told=_MOST_TOLD)
            self._many = True
            return
        self._told[metadata.uid] = now
        kind = self._kind
        about = ObjectRef(kind.kind, metadata.name, metadata.namespace, metadata.uid, f"{kind.group}/{kind.version}")
        where = f"{kind.kind} {_name(item)}"
        self._recorder.record(about, Reason.NOT_ACTED_ON.value, kind_sentence(kind, where), warning=True)


def _name(item: _Object) -> str:
    metadata = item.metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

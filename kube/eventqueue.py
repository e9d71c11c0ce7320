"""Kubernetes Events that wait to be posted: namespaces in turn, of each its warnings first, equal ones as one."""

from __future__ import annotations

from collections import OrderedDict
from datetime import datetime

import msgspec


class ObjectRef(msgspec.Struct, frozen=True, rename="camel"):
    """What an Event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = "v1"


class Event(msgspec.Struct, frozen=True):
    """What is told; equal Events are one object with a count on the server. `component` tells it, empty: the recorder's
    own.
    """

    about: ObjectRef
    type: str
    reason: str
    message: str
    component: str = ""

    @property
    def warning(self) -> bool:
        return self.type == "Warning"


class WaitingEvent(msgspec.Struct):
    """How often an Event came since it was last posted, when first and when last; `name` is chosen at the first try."""

    event: Event
    first: datetime
    last: datetime
    count: int = 1
    name: str = ""
    tries: int = 0


class _Namespace:
    """Events about objects of one namespace, by when they came."""

    def __init__(self) -> None:
        self.warnings: OrderedDict[Event, WaitingEvent] = OrderedDict()
        self.ordinary: OrderedDict[Event, WaitingEvent] = OrderedDict()

    def __len__(self) -> int:
        return len(self.warnings) + len(self.ordinary)

    def lane(self, event: Event) -> OrderedDict[Event, WaitingEvent]:
        return self.warnings if event.warning else self.ordinary


class EventQueue:
    """`take` hands out, `done` or `back` takes back; no Event is handed out twice at the same time.

    Whoever changes objects of one namespace all the time brings about Events without end: those of others wait for no
    more than one of them. In a full room the namespace with the most loses its oldest ordinary Event, a warning only
    where it has nothing but warnings. `dropped` counts every occurrence.
    """

    def __init__(self, room: int) -> None:
        self.dropped = 0
        self._room = room
        self._namespaces: dict[str, _Namespace] = {}
        self._number = 0
        self._taken: dict[Event, WaitingEvent | None] = {}

    def __len__(self) -> int:
        """Different Events that wait; those taken are not among them, unless they came again."""
        return self._number + sum(again is not None for again in self._taken.values())

    @property
    def empty(self) -> bool:
        """Nothing waits and nothing is taken."""
        return not (self._namespaces or self._taken)

    def put(self, event: Event, at: datetime) -> None:
        """One occurrence. What came while the same Event is taken waits until that is back."""
        if event in self._taken:
            again = self._taken[event]
            self._taken[event] = _one_more(again, at) if again else WaitingEvent(event, at, at)
            return
        own = self._namespaces.get(event.about.namespace)
        waiting = own.lane(event).get(event) if own is not None else None
        if waiting is not None:
            _one_more(waiting, at)
        else:
            self._add(WaitingEvent(event, at, at))

    def take(self) -> WaitingEvent | None:
        """Of the namespace whose turn it is the oldest warning, else the oldest of the others."""
        if not self._namespaces:
            return None
        name = next(iter(self._namespaces))
        own = self._namespaces.pop(name)
        event, waiting = (own.warnings or own.ordinary).popitem(last=False)
        self._number -= 1
        if own:
            self._namespaces[name] = own
        self._taken[event] = None
        return waiting

    def done(self, waiting: WaitingEvent) -> None:
        """It was posted, or given up."""
        again = self._taken.pop(waiting.event)
        if again is not None:
            self._add(again)

    def back(self, waiting: WaitingEvent) -> None:
        """It goes to the end, for another try, together with what came meanwhile."""
        again = self._taken.pop(waiting.event)
        if again is not None:
            waiting.count, waiting.last = waiting.count + again.count, again.last
        self._add(waiting)

    def _add(self, waiting: WaitingEvent) -> None:
        """One that is not there yet, at the end of its lane."""
        event = waiting.event
        self._namespaces.setdefault(event.about.namespace, _Namespace()).lane(event)[event] = waiting
        self._number += 1
        while self._number > self._room:
            self._drop(max(self._namespaces, key=lambda name: len(self._namespaces[name])))

    def _drop(self, name: str) -> None:
        own = self._namespaces[name]
        _, lost = (own.ordinary or own.warnings).popitem(last=False)
        self.dropped += lost.count
        self._number -= 1
        if not own:
            del self._namespaces[name]


def _one_more(waiting: WaitingEvent, at: datetime) -> WaitingEvent:
    waiting.count, waiting.last = waiting.count + 1, at
    return waiting

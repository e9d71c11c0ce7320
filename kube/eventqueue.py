"""Kubernetes Events that wait to be posted: warnings before others, equal ones as one, in bounded room."""

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


class EventQueue:
    """`take` hands out, `done` or `back` takes back; no Event is handed out twice at the same time.

    In a full room the oldest ordinary Event is dropped, a warning only where there are nothing but warnings. `dropped`
    counts every occurrence.
    """

    def __init__(self, room: int) -> None:
        self.dropped = 0
        self._room = room
        self._warnings: OrderedDict[Event, WaitingEvent] = OrderedDict()
        self._ordinary: OrderedDict[Event, WaitingEvent] = OrderedDict()
        self._taken: dict[Event, WaitingEvent | None] = {}

    def __len__(self) -> int:
        """Different Events that wait; those taken are not among them, unless they came again."""
        return len(self._warnings) + len(self._ordinary) + sum(again is not None for again in self._taken.values())

    @property
    def empty(self) -> bool:
        """Nothing waits and nothing is taken."""
        return not (self._warnings or self._ordinary or self._taken)

    def put(self, event: Event, at: datetime) -> None:
        """One occurrence. What came while the same Event is taken waits until that is back."""
        if event in self._taken:
            again = self._taken[event]
            self._taken[event] = _one_more(again, at) if again else WaitingEvent(event, at, at)
            return
        waiting = self._lane(event).get(event)
        if waiting is not None:
            _one_more(waiting, at)
        else:
            self._lane(event)[event] = WaitingEvent(event, at, at)
            self._make_room()

    def take(self) -> WaitingEvent | None:
        """The oldest warning, else the oldest of the others."""
        lane = self._warnings or self._ordinary
        if not lane:
            return None
        event, waiting = lane.popitem(last=False)
        self._taken[event] = None
        return waiting

    def done(self, waiting: WaitingEvent) -> None:
        """It was posted, or given up."""
        again = self._taken.pop(waiting.event)
        if again is not None:
            self._lane(again.event)[again.event] = again
            self._make_room()

    def back(self, waiting: WaitingEvent) -> None:
        """It goes to the end, for another try, together with what came meanwhile."""
        again = self._taken.pop(waiting.event)
        if again is not None:
            waiting.count, waiting.last = waiting.count + again.count, again.last
        self._lane(waiting.event)[waiting.event] = waiting
        self._make_room()

    def _lane(self, event: Event) -> OrderedDict[Event, WaitingEvent]:
        return self._warnings if event.warning else self._ordinary

    def _make_room(self) -> None:
        while len(self._warnings) + len(self._ordinary) > self._room:
            _, lost = (self._ordinary or self._warnings).popitem(last=False)
            self.dropped += lost.count


def _one_more(waiting: WaitingEvent, at: datetime) -> WaitingEvent:
    waiting.count, waiting.last = waiting.count + 1, at
    return waiting

"""Open preemption notices: from when a victim is told until its deadline, or until the notice is withdrawn."""

from __future__ import annotations

from collections.abc import Iterator

from model.report import PreemptionNotice
from scheduler.ports import Clock

_SLACK = 1_024
"""So many notices that are over are carried along."""


class NoticeBoard:
    """Kept on both sides of the link process, so that neither a new stream nor a new process loses one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, dict[str, PreemptionNotice]] = {}
        self._put = 0
        self._most = _SLACK

    def put(self, node: str, notice: PreemptionNotice) -> None:
        """The newest notice of a pod counts."""
        self._put += 1
        if self._put > self._most:
            self._forget_old()
        self._open.setdefault(node, {})[notice.pod_uid] = notice

    def remove(self, node: str, pod_uid: str) -> None:
        """Nothing happens to a pod that was not told."""
        notices = self._open.get(node, {})
        notices.pop(pod_uid, None)
        if not notices:
            self._open.pop(node, None)

    def of(self, node: str) -> tuple[PreemptionNotice, ...]:
        """What stands for the pods of a node, in the order in which it was put there."""
        now = self._clock()
        return tuple(notice for notice in self._open.get(node, {}).values() if notice.deadline_seconds > now)

    def all(self) -> Iterator[tuple[str, PreemptionNotice]]:
        """Every node with each of its open notices."""
        for node in self._open:
            for notice in self.of(node):
                yield node, notice

    def _forget_old(self) -> None:
        now = self._clock()
        for node, notices in list(self._open.items()):
            left = {uid: notice for uid, notice in notices.items() if notice.deadline_seconds > now}
            if left:
                self._open[node] = left
            else:
                del self._open[node]
        # Thousands are put there one after the other: to look at all of them each time would cost their square.
        self._put, self._most = 0, _SLACK + sum(map(len, self._open.values()))

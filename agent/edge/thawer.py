"""Thawer: batch pods of cgroup v1 that should have ended and cannot, since their processes are frozen.

A runtime's SIGKILL waits until a process is thawed; meanwhile its memory is nobody's to free. Whoever is not listed any
more, or was to be gone by now, is thawed; nobody is killed here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import structlog

from agent.core.observe.layout import Layout
from agent.files.thawing import FREEZER, thaw
from agent.ports import TickResult
from agent.worker import WorkerThread

log = structlog.get_logger()

_ROUND = 10
_MOST_FOLDERS = 256


class Thawer:
    """A sink of the tick that looks in one of ten; a thread of its own waits for the kernel."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._tree = root / FREEZER
        self._below = layout.best_effort
        self._worker = WorkerThread("thaw")
        self._looks = 0
        self.thawed = 0

    def take(self, result: TickResult) -> None:
        self._looks += 1
        if self._looks % _ROUND == 0 and (due := tuple(_to_end(result, self._below))):
            self._worker.submit("thaw", partial(self._thaw, due))

    def idle(self, seconds: float) -> bool:
        """Everything is done, within so long."""
        return self._worker.idle(seconds)

    def _thaw(self, cgroups: tuple[str, ...]) -> None:
        for cgroup in cgroups:
            if number := thaw(str(self._tree / cgroup.lstrip("/")), _MOST_FOLDERS):
                self.thawed += number
                log.warning("a pod that should have ended was frozen", cgroup=cgroup, thawed=number)


def _to_end(result: TickResult, best_effort: str) -> Iterator[str]:
    """Cgroups of pods below the best-effort root that nobody lists, or that were to be gone by now."""
    if result.facts.pods is None:
        return
    observation = result.observation
    listed = {pod.uid: pod for pod in result.facts.pods}
    pods = {place.path: listed[uid] for uid, place in observation.places.pods.items() if uid in listed}
    depth = best_effort.count("/") + 1
    for path in observation.places.best_effort:
        pod = pods.get(path)
        gone = pod is None or (pod.deleting and pod.ends_seconds <= observation.at_seconds)
        if path.count("/") == depth and gone:
            yield path

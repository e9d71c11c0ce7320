"""Tasks of a gang, each with a minimum of its own beside that of the whole gang (Volcano's minTaskMember).

A gang with tasks is placed as one whose tasks are gangs: as many members of each are needed at once as its minimum
lacks, and what the whole gang lacks beside that comes from the tasks that have the most members left. These are enough,
and where those would not fit, others might.
"""

from __future__ import annotations

from collections.abc import Iterable

from model.pod.pod import Pod
from scheduler.core.gangs.minimum import GangPart

_APART = "#"
"""In no name of a gang."""


def place_key(part: GangPart, pod: Pod) -> str:
    """The gang that a member counts as when it is placed: its own, or its task of it."""
    if not part.spec.tasks:
        return part.key
    return part.key + _APART + (pod.spec.task if pod.spec.task in dict(part.spec.tasks) else "")


def place_needs(part: GangPart) -> tuple[tuple[str, int], ...]:
    """How many members of each such gang must be placed at once."""
    if not part.spec.tasks:
        return ((part.key, part.needed),)
    minimums = dict(part.spec.tasks)
    waiting = _by_task(part, part.members.pending)
    had = _by_task(part, (*part.members.placed, *part.members.succeeded))
    needs = {task: max(0, minimums.get(task, 0) - had.get(task, 0)) for task in (*minimums, "")}
    rest = max(0, part.needed - sum(needs.values()))
    for task in sorted(needs, key=lambda task: (needs[task] - waiting.get(task, 0), task)):
        more = min(rest, max(0, waiting.get(task, 0) - needs[task]))
        needs[task], rest = needs[task] + more, rest - more
    return tuple((part.key + _APART + task, needs[task]) for task in needs)


def lacking(part: GangPart) -> str:
    """The first task of which too few members exist, in words; empty where each has enough."""
    if not part.spec.tasks:
        return ""
    there = _by_task(part, part.members.counted)
    for task, minimum in part.spec.tasks:
        if there.get(task, 0) < minimum:
            return f"{there.get(task, 0)} of {minimum} members of task {task} exist"
    return ""


def _by_task(part: GangPart, pods: Iterable[Pod]) -> dict[str, int]:
    """Members of tasks without a minimum count together."""
    known, found = dict(part.spec.tasks), dict[str, int]()
    for pod in pods:
        task = pod.spec.task if pod.spec.task in known else ""
        found[task] = found.get(task, 0) + 1
    return found

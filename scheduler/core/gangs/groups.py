"""Which gangs go together: Koordinator's gang groups, one workload each.

A gang belongs to the group that it lists itself, as in Koordinator (coscheduling/core/gang.go, GangGroupId). Where a
listed gang lists another group, the one that lists it is held and says so: neither is placed half, and no gang can be
made to wait by another that names it without being named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from model.pod import Pod

_NO_GROUPS: Mapping[str, str] = {}


def group_id(key: str, groups: Iterable[str] = ()) -> str:
    """Koordinator's group id: the sorted keys of its gangs, joined by commas; for a gang alone its own key."""
    return ",".join(sorted({key, *groups}))


def keys_of(subject: str) -> tuple[str, ...]:
    """The keys of the gangs of a subject, sorted; none for a lone pod."""
    return tuple(subject.removeprefix("gang/").split(",")) if subject.startswith("gang/") else ()


def group_of(subject: str) -> str:
    """The subject of a gang group, empty for what is named by the pod itself: its gang alone, or a lone pod."""
    return subject if "," in subject else ""


def subject_of(pod: Pod, groups: Mapping[str, str] = _NO_GROUPS) -> str:
    """`gang/` and the group id of its gang, or `pod/namespace/name`; `groups` maps gang keys to group ids."""
    if pod.gang is None:
        return f"pod/{pod.key}"
    return f"gang/{groups.get(pod.gang.key, pod.gang.key)}"


class GroupIndex:
    """Group ids by gang key, of gangs that are in a group; each change says which subjects are to be looked at."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}
        self._named_by: dict[str, set[str]] = {}

    @property
    def ids(self) -> Mapping[str, str]:
        """Gang key → group id; for `subject_of`."""
        return self._ids

    def subject(self, key: str) -> str:
        """The subject under which a gang is placed."""
        return f"gang/{self._ids.get(key, key)}"

    def define(self, key: str, groups: Iterable[str] = ()) -> set[str]:
        """A gang has arrived, changed or gone (no groups): the subjects concerned, its former one included."""
        before = self._ids.get(key, key)
        after = group_id(key, groups)
        if after != before:
            self._move(key, before, after)
        return {f"gang/{before}", f"gang/{after}", *self.naming(key)}

    def naming(self, key: str) -> set[str]:
        """The subjects whose groups list a gang: those that a change of its pods may concern."""
        return {self.subject(other) for other in self._named_by.get(key, ())}

    def _move(self, key: str, before: str, after: str) -> None:
        for named in before.split(","):
            namers = self._named_by.get(named, set())
            namers.discard(key)
            if not namers:
                self._named_by.pop(named, None)
        self._ids.pop(key, None)
        if after == key:
            return
        self._ids[key] = after
        for named in after.split(","):
            self._named_by.setdefault(named, set()).add(key)

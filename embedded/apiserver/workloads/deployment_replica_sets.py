"""A Deployment's ReplicaSets while one look at it decides about them, and the arithmetic of going from one to the next.

Source: kubernetes `pkg/controller/deployment/util/deployment_util.go`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of, parse_time
from embedded.apiserver.reconciling.template_hash import TEMPLATE_HASH, without_label

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", "deprecated.deployment.rollback.to", REVISION, HISTORY}
    | {DESIRED, MOST}
)
_HISTORY_CHARACTERS = 2000


@dataclass(slots=True)
class SizedReplicaSet:
    """One ReplicaSet; the wanted number of pods, the annotations and the seconds of readiness may be changed."""

    obj: Object
    replicas: int
    annotations: dict[str, str]
    min_ready_seconds: int
    old_replicas: int

    @property
    def name(self) -> str:
        return name_of(self.obj)

    @property
    def deleting(self) -> bool:
        return being_deleted(self.obj)

    @property
    def age(self) -> tuple[float, str]:
        """Sorts the oldest first."""
        return (parse_time(self.obj["metadata"].get("creationTimestamp")) or float("inf"), self.name)

    @property
    def revision(self) -> int:
        return natural(self.annotations.get(REVISION, "")) or 0

    def status(self, key: str) -> int:
        return int(dig(self.obj, f"status.{key}") or 0)

    @property
    def observed(self) -> bool:
        return bool(self.status("observedGeneration") >= self.obj["metadata"].get("generation", 0))

    @property
    def changed(self) -> bool:
        held = self.obj["metadata"].get("annotations") or {}
        seconds = self.obj["spec"].get("minReadySeconds") or 0
        return (self.replicas, self.annotations, self.min_ready_seconds) != (self.old_replicas, held, seconds)

    def note(self, key: str, value: str) -> None:
        self.annotations[key] = value


def sized(replica_set: Object) -> SizedReplicaSet:
    spec, annotations = replica_set["spec"], replica_set["metadata"].get("annotations") or {}
    return SizedReplicaSet(
        replica_set, spec["replicas"], dict(annotations), spec.get("minReadySeconds") or 0, spec["replicas"]
    )


def is_rolling(deployment: Object) -> bool:
    return bool(deployment["spec"]["strategy"]["type"] == "RollingUpdate")


def _scaled(value: int | str, whole: int, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = int(value[:-1]) * whole / 100
    return ceil(share) if up else floor(share)


def most_unavailable(deployment: Object) -> int:
    """How many pods may be missing during an update; one, where neither that nor a surplus would be allowed."""
    wanted = deployment["spec"]["replicas"]
    if not is_rolling(deployment) or not wanted:
        return 0
    rolling = deployment["spec"]["strategy"]["rollingUpdate"]
    found = _scaled(rolling["maxUnavailable"], wanted, up=False)
    if not found and not most_surplus(deployment):
        found = 1
    return int(min(found, wanted))


def most_surplus(deployment: Object) -> int:
    if not is_rolling(deployment):
        return 0
    return _scaled(deployment["spec"]["strategy"]["rollingUpdate"]["maxSurge"], deployment["spec"]["replicas"], up=True)


def wanted_of(sets: Iterable[SizedReplicaSet]) -> int:
    return sum(each.replicas for each in sets)


def counted(sets: Iterable[SizedReplicaSet], key: str) -> int:
    """The sum of a number of their statuses."""
    return sum(each.status(key) for each in sets)


def new_and_old(
    deployment: Object, sets: Sequence[SizedReplicaSet]
) -> tuple[SizedReplicaSet | None, list[SizedReplicaSet]]:
    """The oldest ReplicaSet with the Deployment's template, and all others, the oldest first."""
    template = without_label(deployment["spec"]["template"], TEMPLATE_HASH)
    ordered = sorted(sets, key=lambda each: each.age)
    same = (each for each in ordered if without_label(each.obj["spec"]["template"], TEMPLATE_HASH) == template)
    new = next(same, None)
    return new, [each for each in ordered if each is not new]


def note_sizes(deployment: Object, each: SizedReplicaSet) -> None:
    """What the Deployment was when this ReplicaSet got its size: by that a later change of size is shared out."""
    wanted = deployment["spec"]["replicas"]
    each.note(DESIRED, str(wanted))
    each.note(MOST, str(wanted + most_surplus(deployment)))


def take_revision(deployment: Object, new: SizedReplicaSet, revision: int) -> None:
    """Give the current ReplicaSet the newest revision, and the Deployment's annotations."""
    for key, value in (deployment["metadata"].get("annotations") or {}).items():
        if key not in _NOT_COPIED:
            new.note(key, value)
    held = new.annotations.get(REVISION, "")
    if (held and natural(held) is None) or new.revision >= revision:
        return
    if held:
        new.note(HISTORY, _with_revision(new.annotations.get(HISTORY, ""), held))
    new.note(REVISION, str(revision))


def _with_revision(history: str, revision: str) -> str:
    kept = [*(history.split(",") if history else []), revision]
    while len(",".join(kept)) > _HISTORY_CHARACTERS:
        kept.pop(0)
    return ",".join(kept)


def grown(deployment: Object, sets: Sequence[SizedReplicaSet], new: SizedReplicaSet) -> int:
    """To how many pods the current ReplicaSet may grow at this moment."""
    wanted = deployment["spec"]["replicas"]
    if not is_rolling(deployment):
        return int(wanted)
    room = wanted + most_surplus(deployment) - wanted_of(sets)
    return new.replicas if room <= 0 else new.replicas + int(min(room, wanted - new.replicas))


def share_out(deployment: Object, active: Sequence[SizedReplicaSet]) -> None:
    """Change the sizes of ReplicaSets in the middle of an update in proportion; the largest takes what rounding leaves.

    https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#proportional-scaling
    """
    wanted = deployment["spec"]["replicas"]
    add = (wanted + most_surplus(deployment) if wanted else 0) - wanted_of(active)
    # Of equal ones the newer grows first, the older shrinks first.
    newest_first = sorted(active, key=lambda each: each.age, reverse=add > 0)
    ordered, added = sorted(newest_first, key=lambda each: -each.replicas), 0
    for each in ordered:
        step = _share(deployment, each, add, added)
        added += step
        each.replicas += step
        note_sizes(deployment, each)
    if ordered and add:
        ordered[0].replicas = max(0, ordered[0].replicas + add - added)


def _share(deployment: Object, each: SizedReplicaSet, add: int, added: int) -> int:
    if not each.replicas or add in (0, added):
        return 0
    fraction = _fraction(deployment, each)
    return min(fraction, add - added) if add > 0 else max(fraction, add - added)


def _fraction(deployment: Object, each: SizedReplicaSet) -> int:
    wanted: int = deployment["spec"]["replicas"]
    if not wanted:
        return -each.replicas
    before: int = natural(each.annotations.get(MOST, "")) or dig(deployment, "status.replicas", 0)
    if not before:
        return 0
    return floor(each.replicas * (wanted + most_surplus(deployment)) / before + 0.5) - each.replicas

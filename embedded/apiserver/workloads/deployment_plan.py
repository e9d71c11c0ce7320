"""What a Deployment needs next, decided from it and its ReplicaSets alone. One look takes one step.

https://kubernetes.io/docs/concepts/workloads/controllers/deployment/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, name_of, namespace_of
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.reconciling.template_hash import TEMPLATE_HASH, template_hash, with_entry, with_label
from embedded.apiserver.workloads.deployment_replica_sets import (
    DESIRED,
    REVISION,
    SizedReplicaSet,
    counted,
    grown,
    is_rolling,
    most_unavailable,
    new_and_old,
    note_sizes,
    share_out,
    sized,
    take_revision,
    wanted_of,
)
from embedded.apiserver.workloads.deployment_status import (
    PROGRESSING,
    Conditions,
    has_deadline,
    is_complete,
    next_check,
    note_availability,
    note_failures,
    note_pause,
    note_progress,
    numbers,
)

CREATE_FAILED = "ReplicaSetCreateError"
_FOR_EVER = 2**31 - 1
_LONGEST_NAME = 253


@dataclass(frozen=True, slots=True)
class DeploymentPlan:
    """The new status and revision; ReplicaSets to change, to create and to delete; what to tell; when to look again."""

    status: Object
    revision: str = ""
    change: tuple[SizedReplicaSet, ...] = ()
    create: Object | None = None
    delete: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    look_again: float | None = None


def plan_deployment(
    deployment: Object, replica_sets: Sequence[Object], old_pods_run: bool, now: float
) -> DeploymentPlan:
    """One look at a Deployment. `old_pods_run` says whether pods of other templates have not ended yet."""
    look = _Look(deployment, [sized(each) for each in replica_sets], now)
    if being_deleted(deployment):
        return look.counted_only()
    look.note_pause()
    look.keep_revision()
    if deployment["spec"].get("paused"):
        return look.resized(clean=True)
    if look.was_resized():
        return look.resized()
    return look.rolled() if is_rolling(deployment) else look.replaced(old_pods_run)


class _Look:
    """One look at one Deployment: changes its view of the ReplicaSets step by step."""

    def __init__(self, deployment: Object, sets: list[SizedReplicaSet], now: float) -> None:
        self._deployment, self._spec = deployment, deployment["spec"]
        self._new, self._old = new_and_old(deployment, sets)
        self._conditions = Conditions(list(dig(deployment, "status.conditions") or ()), now)
        self._create: Object | None = None
        self._delete: tuple[str, ...] = ()
        self._notices: list[Notice] = []

    @property
    def _all(self) -> list[SizedReplicaSet]:
        return [*self._old, *([self._new] if self._new else [])]

    # -- what is the case --------------------------------------------------------------------------------------

    def note_pause(self) -> None:
        note_pause(self._deployment, self._conditions)

    def keep_revision(self) -> None:
        """The current ReplicaSet has the newest revision, also after a way back to it."""
        if self._new is None:
            return
        take_revision(self._deployment, self._new, self._next_revision)
        self._new.min_ready_seconds = self._spec.get("minReadySeconds") or 0
        if has_deadline(self._deployment) and self._conditions.get(PROGRESSING) is None:
            self._conditions.set(PROGRESSING, "True", "FoundNewReplicaSet", f'Found new replica set "{self._new.name}"')

    @property
    def _next_revision(self) -> int:
        return max((each.revision for each in self._old), default=0) + 1

    def was_resized(self) -> bool:
        """Whether the wanted number is another than when the ReplicaSets got their sizes."""
        told = (natural(each.annotations.get(DESIRED, "")) for each in self._all if each.replicas)
        return any(number is not None and number != self._spec["replicas"] for number in told)

    # -- ways to go --------------------------------------------------------------------------------------------

    def counted_only(self) -> DeploymentPlan:
        return self._plan(progress=False)

    def resized(self, clean: bool = False) -> DeploymentPlan:
        """Bring the number of pods to the wanted one, without going on with an update."""
        active = [each for each in self._all if each.replicas]
        if len(active) <= 1:
            latest = active[0] if active else self._new or (self._old[-1] if self._old else None)
            if latest is not None:
                self._resize(latest, self._spec["replicas"])
        elif self._is_saturated():
            for each in self._old:
                self._resize(each, 0)
        elif is_rolling(self._deployment):
            before = {each.name: each.replicas for each in active}
            share_out(self._deployment, active)
            for each in active:
                self._tell_size(each, before[each.name])
        if clean:
            self._clean_up()
        return self._plan(progress=False)

    def _is_saturated(self) -> bool:
        new, wanted = self._new, self._spec["replicas"]
        if new is None or natural(new.annotations.get(DESIRED, "")) != wanted:
            return False
        return bool(new.replicas == wanted == new.status("availableReplicas"))

    def rolled(self) -> DeploymentPlan:
        """Grow the current ReplicaSet while there is room for it, then shrink the others as far as enough is left."""
        new = self._new or self._made()
        wanted = self._spec["replicas"]
        size = wanted if new.replicas > wanted else grown(self._deployment, self._all, new)
        if not self._resize(new, size) and not self._shrunk(new):
            self._clean_up_when_complete()
        return self._plan()

    def _shrunk(self, new: SizedReplicaSet) -> bool:
        least = self._spec["replicas"] - most_unavailable(self._deployment)
        missing = new.replicas - new.status("availableReplicas")
        spare = wanted_of(self._all) - least - missing
        if spare <= 0 or not wanted_of(self._old):
            return False
        first = self._drop_unavailable(spare)
        return self._drop_available(counted(self._all, "availableReplicas") - least) or first

    def _drop_unavailable(self, most: int) -> bool:
        """Pods that serve nobody go first, whichever ReplicaSet they are of."""
        left = most
        for each in self._old:
            drop = min(left, each.replicas - each.status("availableReplicas"))
            if drop > 0:
                self._resize(each, each.replicas - drop)
                left -= drop
        return left < most

    def _drop_available(self, most: int) -> bool:
        left = most
        for each in self._old:
            drop = min(left, each.replicas)
            if drop > 0:
                self._resize(each, each.replicas - drop)
                left -= drop
        return left < most

    def replaced(self, old_pods_run: bool) -> DeploymentPlan:
        """End all other pods before the first of the current template starts."""
        shrunk = [self._resize(each, 0) for each in self._old]
        if any(shrunk) or old_pods_run or counted(self._old, "replicas"):
            return self._plan()
        self._resize(self._new or self._made(), self._spec["replicas"])
        self._clean_up_when_complete()
        return self._plan()

    # -- steps -------------------------------------------------------------------------------------------------

    def _resize(self, each: SizedReplicaSet, size: int) -> bool:
        """Whether that is a change."""
        before = each.replicas
        if before == size:
            return False
        each.replicas = size
        note_sizes(self._deployment, each)
        self._tell_size(each, before)
        return True

    def _tell_size(self, each: SizedReplicaSet, before: int) -> None:
        if each.replicas != before and (self._create is None or each.obj is not self._create):
            way = "up" if before < each.replicas else "down"
            message = f"Scaled {way} replica set {each.name} from {before} to {each.replicas}"
            self._notices.append(Notice("ScalingReplicaSet", message))

    def _made(self) -> SizedReplicaSet:
        """A ReplicaSet for the current template, of no size yet."""
        self._create = new_replica_set(self._deployment)
        self._new = made = sized(self._create)
        take_revision(self._deployment, made, self._next_revision)
        note_sizes(self._deployment, made)
        if has_deadline(self._deployment):
            self._conditions.set(PROGRESSING, "True", "NewReplicaSetCreated", f'Created new replica set "{made.name}"')
        return made

    def _clean_up_when_complete(self) -> None:
        if is_complete(self._deployment, self._deployment.get("status") or {}):
            self._clean_up()

    def _clean_up(self) -> None:
        """Forget the oldest revisions beyond the limit."""
        limit = self._spec.get("revisionHistoryLimit")
        if limit in (None, _FOR_EVER):
            return
        alive = sorted((each for each in self._old if not each.deleting), key=lambda each: (each.revision, each.age))
        surplus = alive[: max(0, len(alive) - limit)]
        idle = (each for each in surplus if not each.replicas and not each.status("replicas") and each.observed)
        self._delete = tuple(each.name for each in idle)

    # -- what comes of it --------------------------------------------------------------------------------------

    def _plan(self, *, progress: bool = True) -> DeploymentPlan:
        status = numbers(self._deployment, self._new, self._all)
        note_availability(self._deployment, status, self._conditions)
        if progress:
            note_progress(self._deployment, self._new, status, self._conditions)
            note_failures(self._all, self._new, self._conditions)
        status["conditions"] = self._conditions.held
        return DeploymentPlan(
            status,
            self._new.annotations.get(REVISION, "") if self._new else "",
            tuple(each for each in self._all if each.changed and each.obj is not self._create),
            self._created(),
            self._delete,
            tuple(self._notices),
            next_check(self._deployment, status, self._conditions) if progress else None,
        )

    def _created(self) -> Object | None:
        if self._create is None or self._new is None:
            return None
        meta, spec = self._create["metadata"], self._create["spec"]
        return {
            **self._create,
            "metadata": {**meta, "annotations": dict(self._new.annotations)},
            "spec": {**spec, "replicas": self._new.replicas},
        }


def new_replica_set(deployment: Object) -> Object:
    """The ReplicaSet of the current template, of no pods and without owner; its name follows from the template."""
    spec = deployment["spec"]
    short = template_hash(spec["template"], dig(deployment, "status.collisionCount"))
    template = with_label(spec["template"], TEMPLATE_HASH, short)
    selector = spec["selector"]
    return {
        "metadata": {
            "name": f"{name_of(deployment)[: _LONGEST_NAME - 1 - len(short)]}-{short}",
            "namespace": namespace_of(deployment),
            "labels": template["metadata"]["labels"],
            "annotations": {},
        },
        "spec": {
            "replicas": 0,
            "minReadySeconds": spec.get("minReadySeconds") or 0,
            "selector": {**selector, "matchLabels": with_entry(selector.get("matchLabels"), TEMPLATE_HASH, short)},
            "template": template,
        },
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
    }


def refused_creation(deployment: Object, why: str, now: float) -> Object:
    """The status of a Deployment whose ReplicaSet was refused."""
    held: Object = deployment.get("status") or {}
    if not has_deadline(deployment):
        return held
    conditions = Conditions(list(held.get("conditions") or ()), now)
    conditions.set(PROGRESSING, "False", CREATE_FAILED, why)
    return {**held, "conditions": conditions.held}

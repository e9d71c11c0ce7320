"""The status of a Deployment: numbers and conditions.

https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, dig, name_of, parse_time, rfc3339
from embedded.apiserver.workloads.deployment_replica_sets import SizedReplicaSet, counted, most_unavailable, wanted_of

PROGRESSING, AVAILABLE, FAILURE = "Progressing", "Available", "ReplicaFailure"
_FOR_EVER = 2**31 - 1
_DONE, _LATE = "NewReplicaSetAvailable", "ProgressDeadlineExceeded"
_PAUSED, _RESUMED = "DeploymentPaused", "DeploymentResumed"


@dataclass(slots=True)
class Conditions:
    """A Deployment's conditions in the making; each says when it changed, and when it was last confirmed."""

    held: list[Object]
    now: float

    def get(self, kind: str) -> Object | None:
        return next((each for each in self.held if each["type"] == kind), None)

    def drop(self, kind: str) -> None:
        self.held = [each for each in self.held if each["type"] != kind]

    def set(self, kind: str, status: str, reason: str, message: str, renew: bool = False) -> None:
        """One that says the same is left as it is, unless it is to be renewed."""
        old, now = self.get(kind), rfc3339(self.now)
        if old is not None and (old["status"], old.get("reason")) == (status, reason) and not renew:
            return
        since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
        told = {"type": kind, "status": status, "reason": reason, "message": message}
        self.drop(kind)
        self.held.append({**told, "lastUpdateTime": now, "lastTransitionTime": since})


def has_deadline(deployment: Object) -> bool:
    return deployment["spec"].get("progressDeadlineSeconds") not in (None, _FOR_EVER)


def note_pause(deployment: Object, conditions: Conditions) -> None:
    """A paused Deployment makes no progress and is not late."""
    held = conditions.get(PROGRESSING) or {}
    if not has_deadline(deployment) or held.get("reason") == _LATE:
        return
    paused = held.get("reason") == _PAUSED
    if deployment["spec"].get("paused") and not paused:
        conditions.set(PROGRESSING, "Unknown", _PAUSED, "Deployment is paused")
    elif not deployment["spec"].get("paused") and paused:
        conditions.set(PROGRESSING, "Unknown", _RESUMED, "Deployment is resumed")


def numbers(deployment: Object, new: SizedReplicaSet | None, sets: Sequence[SizedReplicaSet]) -> Object:
    """The status without conditions. As Go writes it: zeros are left out, but for the number of pods that end."""
    available = counted(sets, "availableReplicas")
    found: Object = {
        "observedGeneration": deployment["metadata"].get("generation", 1),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": 0 if new is None else new.status("replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted_of(sets) - available),
    }
    kept = {key: number for key, number in found.items() if number}
    kept["terminatingReplicas"] = counted(sets, "terminatingReplicas")
    if (collisions := dig(deployment, "status.collisionCount")) is not None:
        kept["collisionCount"] = collisions
    return kept


def note_availability(deployment: Object, status: Object, conditions: Conditions) -> None:
    if status.get("availableReplicas", 0) >= deployment["spec"]["replicas"] - most_unavailable(deployment):
        conditions.set(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        why = "Deployment does not have minimum availability."
        conditions.set(AVAILABLE, "False", "MinimumReplicasUnavailable", why)


def is_complete(deployment: Object, status: Object) -> bool:
    """Whether every pod is of the current template and available, and nothing else is left."""
    keys, wanted = ("updatedReplicas", "replicas", "availableReplicas"), deployment["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 1)
    return seen and all(status.get(key, 0) == wanted for key in keys)


def note_progress(deployment: Object, new: SizedReplicaSet | None, status: Object, conditions: Conditions) -> None:
    held = conditions.get(PROGRESSING) or {}
    if not has_deadline(deployment):
        conditions.drop(PROGRESSING)
        return
    if status.get("replicas", 0) == status.get("updatedReplicas", 0) and held.get("reason") == _DONE:
        return
    who = f'Deployment "{name_of(deployment)}"' if new is None else f'ReplicaSet "{new.name}"'
    if is_complete(deployment, status):
        conditions.set(PROGRESSING, "True", _DONE, f"{who} has successfully progressed.")
    elif _moved(deployment.get("status") or {}, status):
        conditions.set(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", renew=True)
    elif _is_late(deployment, held, conditions.now):
        conditions.set(PROGRESSING, "False", _LATE, f"{who} has timed out progressing.")


def _moved(old: Object, status: Object) -> bool:
    def rest(each: Object) -> int:
        return int(each.get("replicas", 0) - each.get("updatedReplicas", 0))

    more = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return rest(status) < rest(old) or any(status.get(key, 0) > old.get(key, 0) for key in more)


def _is_late(deployment: Object, held: Object, now: float) -> bool:
    if not held or held.get("reason") == _DONE:
        return False
    return held.get("reason") == _LATE or _deadline(deployment, held) < now


def _deadline(deployment: Object, held: Object) -> float:
    since = parse_time(held.get("lastUpdateTime")) or 0.0
    return since + float(deployment["spec"]["progressDeadlineSeconds"])


def next_check(deployment: Object, status: Object, conditions: Conditions) -> float | None:
    """When a Deployment that does not move would be late; None where nothing is to be watched for."""
    held = conditions.get(PROGRESSING)
    if held is None or not has_deadline(deployment) or held["reason"] == _LATE or is_complete(deployment, status):
        return None
    return _deadline(deployment, held) + 1.0


def note_failures(sets: Sequence[SizedReplicaSet], new: SizedReplicaSet | None, conditions: Conditions) -> None:
    """Pods that cannot be made: what the current ReplicaSet says of it comes before what others say."""
    ordered = [*([new] if new else []), *sets]
    told = (each for one in ordered for each in dig(one.obj, "status.conditions") or () if each["type"] == FAILURE)
    found = next(told, None)
    if found is None:
        conditions.drop(FAILURE)
        return
    held = conditions.get(FAILURE)
    if held is None or (held["status"], held.get("reason")) != (found["status"], found.get("reason")):
        conditions.drop(FAILURE)
        conditions.held.append({**found, "lastUpdateTime": found["lastTransitionTime"]})

"""Pod disruption budgets: their status, and spending them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import ceil

import msgspec

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import (
    Object,
    being_deleted,
    condition,
    controller_of,
    copy,
    dig,
    name_of,
    namespace_of,
    set_condition,
)
from embedded.apiserver.apimachinery.resource_types import DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from embedded.apiserver.apimachinery.selectors import Filter, admits, parse_label_selector
from embedded.apiserver.registry.resources import Resources, WriteOptions
from embedded.apiserver.storage.records import Record


def matches(budget: Object, pod: Object) -> bool:
    """Whether a budget covers a pod. An empty selector covers the whole namespace, an absent one nothing."""
    selector = parse_label_selector(dig(budget, "spec.selector"))
    return selector is not None and admits(selector, dig(pod, "metadata.labels") or {})


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str
    status: str


class _Status(msgspec.Struct, frozen=True, gc=False):
    conditions: tuple[_Condition, ...] | None = None


class _Pod(msgspec.Struct, frozen=True, gc=False):
    status: _Status = _Status()


_POD = msgspec.json.Decoder(_Pod)


def counts(pod: Record) -> bool:
    """Whether a budget that covers this pod expects it to run."""
    return pod.fields["status.phase"] not in ("Succeeded", "Failed")


def is_healthy(pod: Record) -> bool:
    """Ready, and not terminating."""
    conditions = () if pod.deleting else _POD.decode(pod.body).status.conditions or ()
    return any(found.type == "Ready" and found.status == "True" for found in conditions)


def counts_by_scale(budget: Object) -> bool:
    """Whether a budget is a share of what its pods' controllers are to run, not a number of pods."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def budget_status(budget: Object, expected: int, healthy: int, now: float) -> Object:
    """The budget's status when `expected` pods should run and `healthy` of those it covers do."""
    desired = _desired(budget.get("spec") or {}, expected)
    allowed = max(0, healthy - desired) if expected else 0
    generation = budget["metadata"].get("generation", 1)
    fresh = {**budget, "status": copy(budget.get("status") or {})}
    fresh["status"].update(
        observedGeneration=generation,
        expectedPods=expected,
        currentHealthy=healthy,
        desiredHealthy=desired,
        disruptionsAllowed=allowed,
    )
    reason = "SufficientPods" if allowed else "InsufficientPods"
    wanted = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "reason": reason, "message": ""}
    set_condition(fresh, {**wanted, "observedGeneration": generation}, now)
    status: Object = fresh["status"]
    return status


def expected_pods(resources: Resources, controllers: Mapping[str, int]) -> int:
    """How many pods are to run by the word of their controllers (uid → pods of it).

    A pod whose controller has no scale, or that has none, counts for itself.
    """
    scales: dict[str, int] = {}
    alone = 0
    for uid, pods in controllers.items():
        if (found := _scale_of(resources, uid)) is None:
            alone += pods
        else:
            scales[found[0]] = found[1]
    return alone + sum(scales.values())


def _scale_of(resources: Resources, uid: str) -> tuple[str, int] | None:
    """(uid, wanted pods) of who decides how many there are: the Deployment above a ReplicaSet, where there is one."""
    place = resources.store.place_of(uid)
    rtype = None if place is None else resources.registry.by_id(place[0])
    obj = None if rtype is None or place is None else resources.find(rtype, *place[1:])
    if obj is None or rtype is None or "scale" not in rtype.subresources:
        return None
    if rtype is REPLICA_SETS and (above := controller_of(obj)) is not None:
        return _scale_of(resources, above["uid"])
    scale = None if rtype.custom is None else rtype.custom.scale
    return uid, int(dig(obj, scale.spec_replicas if scale else "spec.replicas", 0))


def _desired(spec: Object, expected: int) -> int:
    if (most := spec.get("maxUnavailable")) is not None:
        return max(0, expected - _scaled(most, expected))
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(value: int | str, whole: int) -> int:
    """An absolute number, or a percentage of the whole rounded up, as the disruption controller rounds both."""
    return value if isinstance(value, int) else ceil(int(value[:-1]) * whole / 100)


def write_status(
    resources: Resources, budget: Object, expected: int, healthy: int, options: WriteOptions | None = None
) -> Object:
    """Bring the status of a budget up to date; returns the budget as it is then."""
    fresh = budget_status(budget, expected, healthy, resources.clock())
    if fresh == budget.get("status"):
        return budget
    where = (namespace_of(budget), name_of(budget))
    return resources.update(DISRUPTION_BUDGETS, *where, lambda held: {**held, "status": fresh}, options, "status")


def _counted(resources: Resources, budget: Object, options: WriteOptions) -> Object:
    """The budget with a status that is true at this moment."""
    selector = parse_label_selector(dig(budget, "spec.selector"))
    if selector is None:
        return budget
    covered = [pod for pod in resources.store.select(PODS.id, Filter(namespace_of(budget), selector)) if counts(pod)]
    controllers = Counter(controller_uid(pod) for pod in covered)
    expected = expected_pods(resources, controllers) if counts_by_scale(budget) else len(covered)
    return write_status(resources, budget, expected, sum(map(is_healthy, covered)), options)


def controller_uid(pod: Record) -> str:
    """Whose pod it is; empty where it is nobody's."""
    return pod.owners[0] if pod.owners else ""


def spend(resources: Resources, pod: Object, dry_run: bool = False) -> None:
    """Raise 429 unless the budget over this pod allows one more disruption; a dry run only looks."""
    options = WriteOptions(dry_run=dry_run)
    budgets = resources.objects(DISRUPTION_BUDGETS, Filter(namespace_of(pod)))
    covering = [_counted(resources, budget, options) for budget in budgets if matches(budget, pod)]
    if len(covering) > 1:
        raise status.unexplained(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not covering or _free_to_go(covering[0], pod):
        return
    found = covering[0]["status"]
    if found["disruptionsAllowed"] < 1:
        message = (
            f"The disruption budget {name_of(covering[0])} needs {found['desiredHealthy']} healthy pods and has "
            f"{found['currentHealthy']} currently"
        )
        raise status.too_many_requests(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            [{"reason": "DisruptionBudget", "message": message}],
        )


def _free_to_go(budget: Object, pod: Object) -> bool:
    """An unhealthy pod does not count towards the budget, unless the application is disrupted already."""
    if not being_deleted(pod) and (condition(pod, "Ready") or {}).get("status") == "True":
        return False
    if dig(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    found = budget["status"]
    return bool(found["currentHealthy"] >= found["desiredHealthy"] > 0)

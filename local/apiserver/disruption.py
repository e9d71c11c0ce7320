"""Pod disruption budgets: their status, and spending them."""

from __future__ import annotations

from math import ceil

from local.apiserver import status
from local.apiserver.objects import (
    Object,
    being_deleted,
    condition,
    copy,
    dig,
    ensure,
    name_of,
    namespace_of,
    set_condition,
)
from local.apiserver.registry import DISRUPTION_BUDGETS, PODS
from local.apiserver.resources import Resources
from local.apiserver.selectors import Filter, admits, parse_label_selector


def matches(budget: Object, pod: Object) -> bool:
    """Whether a budget covers a pod. An empty selector covers the whole namespace, an absent one nothing."""
    selector = parse_label_selector(dig(budget, "spec.selector"))
    return selector is not None and admits(selector, dig(pod, "metadata.labels") or {})


def budget_status(budget: Object, pods: list[Object], now: float) -> Object:
    """The budget with its status brought up to date for the pods of its namespace."""
    covered = [pod for pod in pods if matches(budget, pod) and dig(pod, "status.phase") not in ("Succeeded", "Failed")]
    healthy = sum(_healthy(pod) for pod in covered)
    desired = _desired(budget.get("spec") or {}, len(covered))
    allowed = max(0, healthy - desired) if covered else 0
    fresh = copy(budget)
    ensure(fresh, "status").update(
        observedGeneration=budget["metadata"].get("generation", 1),
        expectedPods=len(covered),
        currentHealthy=healthy,
        desiredHealthy=desired,
        disruptionsAllowed=allowed,
    )
    reason = "SufficientPods" if allowed else "InsufficientPods"
    wanted = {"type": "DisruptionAllowed", "status": "True" if allowed else "False", "reason": reason, "message": ""}
    set_condition(fresh, {**wanted, "observedGeneration": budget["metadata"].get("generation", 1)}, now)
    return fresh


def _healthy(pod: Object) -> bool:
    return not being_deleted(pod) and (condition(pod, "Ready") or {}).get("status") == "True"


def _desired(spec: Object, expected: int) -> int:
    if (most := spec.get("maxUnavailable")) is not None:
        return max(0, expected - _scaled(most, expected))
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(value: int | str, whole: int) -> int:
    """An absolute number, or a percentage of the whole rounded up, as the disruption controller rounds both."""
    return value if isinstance(value, int) else ceil(int(value[:-1]) * whole / 100)


def refresh(resources: Resources, namespace: str) -> None:
    """Bring the status of every budget of a namespace up to date."""
    budgets = list(resources.objects(DISRUPTION_BUDGETS, Filter(namespace)))
    if not budgets:
        return
    pods, now = list(resources.objects(PODS, Filter(namespace))), resources.clock()
    for budget in budgets:
        fresh = budget_status(budget, pods, now)
        if fresh["status"] != budget.get("status"):
            _write_status(resources, budget, fresh["status"])


def _write_status(resources: Resources, budget: Object, wanted: Object) -> None:
    def change(held: Object) -> Object:
        return {**held, "status": wanted}

    resources.update(DISRUPTION_BUDGETS, namespace_of(budget), name_of(budget), change, subresource="status")


def spend(resources: Resources, pod: Object) -> None:
    """Raise 429 unless the budget over this pod allows one more disruption."""
    namespace = namespace_of(pod)
    refresh(resources, namespace)
    covering = [found for found in resources.objects(DISRUPTION_BUDGETS, Filter(namespace)) if matches(found, pod)]
    if len(covering) > 1:
        raise status.internal(
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
    if _healthy(pod):
        return False
    if dig(budget, "spec.unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    found = budget["status"]
    return bool(found["currentHealthy"] >= found["desiredHealthy"] > 0)

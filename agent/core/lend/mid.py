"""mid-cpu and mid-memory: what production requested but will not use for hours, and a share of what nobody requested.

    prediction: mid = min(prod reclaimable, capacity - pods used - max(system used, reserved))
                      + unallocated x midUnallocatedPercent
    static:     mid = capacity x midStatic*ReservedPercent

both between 0 and mid*ThresholdPercent of capacity, where

    unallocated = capacity - max(system used, reserved) - requests of pods, at least 0

What is lent is asked for under other names: who asks for the resource itself is promised it, whatever its class.

Source: Koordinator pkg/slo-controller/noderesource/plugins/{midresource,util}.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agent.core.lend.lending_scope import Lendable, LendingScope, cap, share
from model.decision import Decision, TermSum
from model.explain import amount
from model.pod.pod import Pod
from model.reason import Reason
from model.report import Usage
from model.resources import CPU
from model.strategy import ColocationStrategy, MidMode

_NO_PREDICTION = "no prediction of production's peaks is known, so nothing of their requests is lent"


class MidFacts(msgspec.Struct, frozen=True):
    """`node` is the whole node's use, `beside_system` that of pods (what they request where it is not measured) and of
    host applications which do not count as the system's, `prod_reclaimable` None without a prediction, `pods` all that
    are listed, `exclusive_idle_millis` CPU that is idle and that nobody but its pod may use.
    """

    node: Usage
    beside_system: Usage
    prod_reclaimable: Usage | None
    pods: tuple[Pod, ...]
    exclusive_idle_millis: int = 0


def mid(
    resource: Lendable, scope: LendingScope, facts: MidFacts, strategy: ColocationStrategy, at_seconds: float
) -> Decision:
    """What of the node may be lent as mid, in the resource's base unit."""
    static = strategy.mid_mode is MidMode.STATIC
    terms = TermSum()
    if static:
        pct = resource.mid_static_pct
        terms.add("static share", share(scope.capacity, pct), f"{pct} % of capacity")
    else:
        _add_predicted(terms, resource, scope, facts)
        _add_unallocated(terms, resource, scope, facts.pods, strategy.mid_unallocated_pct)
    cap(terms, scope, resource.mid_cap_name, resource.mid_cap_pct)
    return Decision(
        scope.subject,
        resource.mid,
        terms.value,
        resource.unit,
        Reason.COMPUTED,
        terms.terms,
        "static" if static else "prediction",
        at_seconds,
        _NO_PREDICTION if not static and facts.prod_reclaimable is None else "",
    )


def _add_predicted(terms: TermSum, resource: Lendable, scope: LendingScope, facts: MidFacts) -> None:
    if facts.prod_reclaimable is None:
        terms.add("prod reclaimable", 0, "no prediction known")
        return
    terms.add("prod reclaimable", resource.of(facts.prod_reclaimable), "requests of production minus predicted peaks")
    # Each figure is the larger of two averages: the node's less the system's is not what pods use.
    unused = scope.capacity - max(resource.of(facts.node), scope.occupied + resource.of(facts.beside_system))
    unused -= facts.exclusive_idle_millis if resource.native == CPU else 0
    terms.at_most("cap node unused", unused, "capacity minus use of pods, and of the system or what is reserved")
    terms.at_least("floor", 0, "the node is fuller than predicted")


def _add_unallocated(terms: TermSum, resource: Lendable, scope: LendingScope, pods: Iterable[Pod], pct: int) -> None:
    requested = sum(pod.spec.requests[resource.native] for pod in pods if not pod.terminal)
    free = max(scope.capacity - scope.occupied - requested, 0)
    terms.add("unallocated share", share(free, pct), f"{pct} % of {amount(free, resource.unit)} nobody requested")

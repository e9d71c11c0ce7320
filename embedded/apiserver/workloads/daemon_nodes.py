"""On which nodes a DaemonSet runs a pod, and what that pod looks like.

https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#how-daemon-pods-are-scheduled
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from embedded.apiserver.apimachinery.objects import Object, copy, dig, ensure
from embedded.apiserver.reconciling.template_hash import REVISION_HASH, with_label
from embedded.apiserver.registry.taints import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, Taint, Toleration

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PRESSURES = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
_TOLERATED = (
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
    *((f"node.kubernetes.io/{name}", NO_SCHEDULE) for name in _PRESSURES),
)
_NO_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str
    labels: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, gc=False):
    taints: tuple[Taint, ...] | None = None


class DaemonNode(msgspec.Struct, frozen=True, gc=False):
    """What of a node decides whether daemons run there."""

    metadata: _Metadata
    spec: _Spec = _Spec()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels or {}


decode_daemon_node = msgspec.json.Decoder(DaemonNode).decode


@dataclass(frozen=True, slots=True)
class NodeFitness:
    """Whether a node should have a daemon, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


class Daemon:
    """One DaemonSet's template, read once for all nodes."""

    def __init__(self, daemon_set: Object) -> None:
        self._spec = daemon_set["spec"]["template"]["spec"]
        tolerations = _with_tolerations(self._spec)
        self._tolerations = msgspec.convert(tolerations, list[Toleration])

    def standing(self, node: DaemonNode) -> NodeFitness:
        if self._spec.get("nodeName") not in (None, "", node.name) or not self._wanted(node):
            return NodeFitness(False, False)
        bad = [taint for taint in node.spec.taints or () if not any(each.covers(taint) for each in self._tolerations)]
        effects = {taint.effect for taint in bad}
        return NodeFitness(not effects & {NO_SCHEDULE, NO_EXECUTE}, NO_EXECUTE not in effects)

    def _wanted(self, node: DaemonNode) -> bool:
        """By the node selector, and by any term of the required affinity."""
        if not (self._spec.get("nodeSelector") or {}).items() <= node.labels.items():
            return False
        required = dig(self._spec, f"affinity.nodeAffinity.{_REQUIRED}")
        return required is None or any(_matches(term, node) for term in required["nodeSelectorTerms"])


def _matches(term: Object, node: DaemonNode) -> bool:
    labels, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not labels and not fields:
        return False
    names = {"metadata.name": node.name}
    return all(_holds(each, node.labels) for each in labels) and all(_holds(each, names) for each in fields)


def _holds(expression: Object, found: dict[str, str]) -> bool:
    """NotIn and DoesNotExist hold without the key; Gt and Lt do not, nor where a side is no whole number."""
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return found.get(key) in values
        case "NotIn":
            return found.get(key) not in values
        case "Exists":
            return key in found
        case "DoesNotExist":
            return key not in found
        case operator:
            return key in found and _compared(operator, found[key], values)


def _compared(operator: str, label: str, values: Sequence[str]) -> bool:
    try:
        left, right = int(label), int(values[0])
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


def _with_tolerations(spec: Object) -> list[Object]:
    """Daemons stay on nodes in trouble, and come to those that take no ordinary pods."""
    added = (*_TOLERATED, *((_NO_NETWORK,) if spec.get("hostNetwork") else ()))
    ours = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    pairs = set(added)
    kept = [each for each in spec.get("tolerations") or () if (each.get("key"), each.get("effect")) not in pairs]
    return [*kept, *ours]


def daemon_template(daemon_set: Object, node: str, revision: str) -> Object:
    """The template of the pod for one node: the scheduler can bind it to no other."""
    template = copy(daemon_set["spec"]["template"])
    spec = template["spec"]
    spec["tolerations"] = _with_tolerations(spec)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    ensure(ensure(spec, "affinity"), "nodeAffinity")[_REQUIRED] = {"nodeSelectorTerms": [term]}
    return with_label(template, REVISION_HASH, revision)

"""A pod's own label values, merged into the selectors of its terms: matchLabelKeys and mismatchLabelKeys.

As kube-apiserver does since 1.31 for pod affinity and 1.34 for spreading (pkg/registry/core/pod/strategy.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from embedded.apiserver.apimachinery.objects import Object, dig

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(spec: Object, labels: Mapping[str, str]) -> None:
    """In place; a key the pod does not have asks nothing, and what is merged already stays once."""
    for term in (*_pod_terms(spec), *(spec.get("topologySpreadConstraints") or ())):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for keys, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(keys) or ():
                if key in labels:
                    _add(selector, {"key": key, "operator": operator, "values": [labels[key]]})


def _pod_terms(spec: Object) -> Iterator[Object]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = dig(spec, f"affinity.{kind}") or {}
        yield from affinity.get(_REQUIRED) or ()
        yield from (each["podAffinityTerm"] for each in affinity.get(_PREFERRED) or ())


def _add(selector: Object, expression: Object) -> None:
    expressions = selector.get("matchExpressions") or []
    if expression not in expressions:
        selector["matchExpressions"] = [*expressions, expression]

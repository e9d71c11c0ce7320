"""Node terms: which nodes a pod's required affinity, a preference or a volume names.

Source: k8s.io/component-helpers/scheduling/corev1/nodeaffinity: terms are alternatives, the requirements of one term
all hold, and a term without any matches no node.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.pod.affinity import NodeTerm
from scheduler.core.snapshot.snapshot import Mask, NodeTraits


def matching(traits: NodeTraits, terms: Iterable[NodeTerm]) -> Mask:
    """Rows that at least one of the terms matches."""
    found = np.zeros(len(traits.labels), bool)
    for term in terms:
        found |= _of_term(traits, term)
    return found


def _of_term(traits: NodeTraits, term: NodeTerm) -> Mask:
    if not (term.labels or term.names):
        return np.zeros(len(traits.labels), bool)
    found = np.ones(len(traits.labels), bool)
    for requirement in term.labels:
        found &= traits.index.column(traits.labels, requirement.key).holding(requirement)
    for requirement in term.names:
        found &= traits.index.names(traits.names).holding(requirement)
    return found

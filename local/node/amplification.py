"""A Node that says more than is there, told as Koordinator does: an amplified node, of which agents lend what is there.

Source: Koordinator apis/extension/node_resource_amplification.go.
"""

from __future__ import annotations

import msgspec

from embedded.node.machine.facts import Machine
from embedded.node.registration.node_object import true_amounts
from kube.dialects.koordinator.labels import ANNOTATION_RAW_ALLOCATABLE


def raw_allocatable(machine: Machine) -> dict[str, str | None]:
    """The Node's annotation; None removes what an earlier run wrote."""
    true = true_amounts(machine)
    return {ANNOTATION_RAW_ALLOCATABLE: None if true is None else msgspec.json.encode(true).decode()}

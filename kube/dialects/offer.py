"""What of a Node's offer is believed, with the CPU ratio that its annotation tells."""

from __future__ import annotations

from kube.dialects.koordinator import normalization_ratio
from model.fault import ConfigurationFault
from model.node import Node
from model.offer import Offer, believed


def offer(node: Node) -> Offer:
    """A ratio that cannot be read is none."""
    try:
        return believed(node, normalization_ratio(node))
    except ConfigurationFault:
        return believed(node)

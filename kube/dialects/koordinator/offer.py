"""The believed part of a Node's offer, with the CPU ratio that its annotation says and people allow."""

from __future__ import annotations

import itertools

import msgspec

from kube.dialects.koordinator.labels import normalization_ratio
from kube.dialects.koordinator.sloconfig import (
    Layers,
    NormalizationFields,
    normalization_layers,
    normalization_overlaid,
)
from kube.objects import ConfigMap
from model.fault import ConfigurationFault
from model.node import Node
from model.nodecolocation import LABEL_NORMALIZATION
from model.offer import Offer, believed
from model.strategy import NormalizationStrategy

_LARGEST = 5.0


class AllowedRatios(msgspec.Struct, frozen=True):
    """The largest CPU ratio of a node, by what people wrote: an agent's token can write the node's annotation.

    Which CPU a node has is not known here, so the largest ratio of any counts. `otherwise` holds where there is no
    `slo-controller-config`.
    """

    otherwise: float = 1.0
    is_configured: bool = False
    layers: Layers[NormalizationFields] | None = None

    def most(self, node: Node) -> float:
        if not self.is_configured:
            return self.otherwise
        strategy = NormalizationStrategy(default_ratio=1.0)
        for layer in self.layers.of(node.labels) if self.layers else ():
            strategy = normalization_overlaid(strategy, layer)
        # The label switches normalization on where the document does not, and the token can write no label.
        if not strategy.enable and LABEL_NORMALIZATION not in node.labels:
            return 1.0
        told = [strategy.default_ratio, *itertools.chain(*map(msgspec.structs.astuple, strategy.models.values()))]
        return round(max((float(ratio) for ratio in told if ratio is not None), default=1.0), 2)


def allowed_ratios(otherwise: float, source: ConfigMap | None) -> AllowedRatios:
    """By `slo-controller-config`, None where there is none. Raises ConfigurationFault."""
    return AllowedRatios(otherwise, source is not None, normalization_layers(source))


_ANY = AllowedRatios(_LARGEST)


def offer(node: Node, allowed: AllowedRatios = _ANY) -> Offer:
    """A ratio that cannot be read is none."""
    try:
        told = normalization_ratio(node)
    except ConfigurationFault:
        told = None
    return believed(node, None if told is None else min(told, allowed.most(node)))

"""Which CPU ratio of a node is believed, by `slo-controller-config`."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.offer import allowed_ratios
from kube.objects import ConfigMap, Metadata
from model.node import Node
from model.nodecolocation import LABEL_NORMALIZATION

FAST = '"ratioModel": {"fast": {"baseRatio": 1.2, "hyperThreadTurboEnabledRatio": 1.255}}'
POOL = '"nodeConfigs": [{"nodeSelector": {"matchLabels": {"pool": "new"}}, "enable": true, "defaultRatio": 2}]'
CASES: dict[str, tuple[str | None, dict[str, str], float]] = {
    "no ConfigMap": (None, {}, 1.5),
    "another key alone": ("", {}, 1.0),
    "off": (f'{{"enable": false, "defaultRatio": 3, {FAST}}}', {}, 1.0),
    "off, and on by the node's label": (f'{{"enable": false, {FAST}}}', {LABEL_NORMALIZATION: "true"}, 1.25),
    "on": (f'{{"enable": true, {FAST}}}', {}, 1.25),
    "the default is the largest": (f'{{"enable": true, "defaultRatio": 3, {FAST}}}', {}, 3.0),
    "on for a pool": (f'{{"enable": false, {POOL}}}', {"pool": "new"}, 2.0),
    "off for another": (f'{{"enable": false, {POOL}}}', {"pool": "old"}, 1.0),
}


@pytest.mark.parametrize(("text", "labels", "most"), CASES.values(), ids=CASES)
def test_what_people_allow(text: str | None, labels: dict[str, str], most: float) -> None:
    """The largest ratio that any CPU of the node may have, cut to the two decimals that are written."""
    data = {"cpu-normalization-config": text} if text else {}
    source = None if text is None else ConfigMap(Metadata("slo-controller-config"), data)
    assert allowed_ratios(1.5, source).most(Node("n", labels=labels)) == most

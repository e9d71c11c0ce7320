"""Keys of slo-controller-config: where each has its values and its entries."""

from __future__ import annotations

import pytest

from kube.dialects.koordinator.configkey import SECTION_OF, ConfigKey, Section


@pytest.mark.parametrize("key", ConfigKey)
def test_a_key_that_fills_a_section_has_strategies(key: ConfigKey) -> None:
    """The others have the cluster's values at the top."""
    strategies = ("clusterStrategy", "nodeStrategies")
    assert (key.cluster, key.entries) == (strategies if key in SECTION_OF else ("", "nodeConfigs"))


def test_every_section_has_a_key() -> None:
    """No section of a NodeSLO is made from nothing, none from two keys."""
    assert sorted(SECTION_OF.values()) == sorted(Section)

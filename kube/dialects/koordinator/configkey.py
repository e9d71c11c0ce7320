"""Keys of `slo-controller-config`, how each is laid out, and which section of a NodeSLO it fills.

Source: Koordinator apis/extension and apis/configuration/slo_controller_config.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

NODE_STRATEGIES = "nodeStrategies"
NODE_CONFIGS = "nodeConfigs"


class ConfigKey(StrEnum):
    """A key of the ConfigMap that means something; admission warns of any other."""

    COLOCATION = "colocation-config"
    THRESHOLD = "resource-threshold-config"
    QOS = "resource-qos-config"
    CPU_BURST = "cpu-burst-config"
    SYSTEM = "system-config"
    HOST_APPLICATIONS = "host-application-config"
    NORMALIZATION = "cpu-normalization-config"
    AMPLIFICATION = "resource-amplification-config"

    @property
    def cluster(self) -> str:
        """The field with the values for every node; empty where they stand at the top."""
        return "clusterStrategy" if self in SECTION_OF else ""

    @property
    def entries(self) -> str:
        """The field with what differs on some nodes."""
        return NODE_STRATEGIES if self in SECTION_OF else NODE_CONFIGS


class Section(StrEnum):
    """A section of a NodeSLO's spec."""

    THRESHOLD = "resourceUsedThresholdWithBE"
    QOS = "resourceQOSStrategy"
    CPU_BURST = "cpuBurstStrategy"
    SYSTEM = "systemStrategy"


SECTION_OF: Mapping[ConfigKey, Section] = {
    ConfigKey.THRESHOLD: Section.THRESHOLD,
    ConfigKey.QOS: Section.QOS,
    ConfigKey.CPU_BURST: Section.CPU_BURST,
    ConfigKey.SYSTEM: Section.SYSTEM,
}
"""The key that a section is made from."""

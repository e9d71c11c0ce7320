"""Scores of nodes, by the names of kube-scheduler's and Koordinator's plugins."""

from __future__ import annotations

from enum import StrEnum


class ScorePlugin(StrEnum):
    """A score that weighs one node against another."""

    FIT = "NodeResourcesFit"
    BALANCE = "NodeResourcesBalancedAllocation"
    LOAD = "LoadAwareScheduling"
    NODE_AFFINITY = "NodeAffinity"
    TAINTS = "TaintToleration"
    SPREAD = "PodTopologySpread"
    POD_AFFINITY = "InterPodAffinity"


class ScoringStrategyType(StrEnum):
    """scoringStrategy.type of NodeResourcesFit."""

    SPREAD = "LeastAllocated"
    BINPACK = "MostAllocated"
    RATIO = "RequestedToCapacityRatio"

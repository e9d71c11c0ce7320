"""Taints and tolerations as objects write them, in the model.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
"""

from __future__ import annotations

from kube import objects
from model.node import Taint, TaintEffect
from model.pod.spec import Toleration, TolerationOperator

_EFFECTS = {member.value: member for member in TaintEffect}


def taint(source: objects.Taint) -> Taint:
    """One of a node's, or of a flavour's."""
    return Taint(source.key, source.value, _effect(source.effect))


def toleration(source: objects.Toleration) -> Toleration:
    """One of a pod's, or of a flavour's; another operator than Exists is Equal."""
    exists = source.operator == TolerationOperator.EXISTS
    operator = TolerationOperator.EXISTS if exists else TolerationOperator.EQUAL
    return Toleration(source.key, operator, source.value, _effect(source.effect) if source.effect else None)


def _effect(word: str) -> TaintEffect:
    return _EFFECTS.get(word, TaintEffect.UNKNOWN)

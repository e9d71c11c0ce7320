"""Whom an agent may have evicted; tests/architecture/test_deploy_policy.py compares it with the policy."""

from __future__ import annotations

from typing import Any

import pytest

from admission.core.evictions import StoredPod, refusal

QOS, CLASS, WILLING = "koordinator.sh/qosClass", "koordinator.sh/priority-class", "koordinator.sh/eviction-enabled"
NOT_ITS_BUSINESS = (
    "Pod shop/web: metadata.labels[koordinator.sh/qosClass] is {}, and neither metadata.labels[koordinator.sh/priority-class] "
    "nor spec.priority says koord-batch or koord-free: an agent may evict such pods and those of class BE alone; label it "
    "koordinator.sh/eviction-enabled=true to allow it"
)
PODS: dict[str, tuple[dict[str, Any], str]] = {
    "best effort": ({"labels": {QOS: "BE"}}, ""),
    "best effort of high priority": ({"labels": {QOS: "BE"}, "priority": 9000}, ""),
    "batch by label": ({"labels": {CLASS: "koord-batch"}, "priority": 9000}, ""),
    "free by label": ({"labels": {CLASS: "koord-free"}}, ""),
    "the highest of batch": ({"priority": 5999}, ""),
    "the lowest of free": ({"priority": 3000}, ""),
    "the highest of free": ({"priority": 3999}, ""),
    "the lowest of batch": ({"priority": 5000}, ""),
    "above free": ({"priority": 4000}, NOT_ITS_BUSINESS.format("none")),
    "below batch": ({"priority": 4999}, NOT_ITS_BUSINESS.format("none")),
    "a label that is no class": ({"labels": {CLASS: "none"}, "priority": 5500}, ""),
    "willing": ({"labels": {QOS: "LS", WILLING: "true"}, "priority": 9000}, ""),
    "online": ({"labels": {QOS: "LS"}, "priority": 9500}, NOT_ITS_BUSINESS.format("LS")),
    "plain": ({}, NOT_ITS_BUSINESS.format("none")),
    "above batch": ({"priority": 6000}, NOT_ITS_BUSINESS.format("none")),
    "below free": ({"priority": 2999}, NOT_ITS_BUSINESS.format("none")),
    "mid": ({"labels": {CLASS: "koord-mid"}, "priority": 5500}, NOT_ITS_BUSINESS.format("none")),
    "prod with a number of batch": (
        {"labels": {CLASS: "koord-prod"}, "priority": 5500},
        NOT_ITS_BUSINESS.format("none"),
    ),
    "unwilling": ({"labels": {WILLING: "True"}}, NOT_ITS_BUSINESS.format("none")),
    "of another node": (
        {"labels": {QOS: "BE"}, "node": "two"},
        "Pod shop/web: spec.nodeName is two: the agent of node one may not evict a pod of another node; leave it to the "
        "agent of node two",
    ),
    "of no node yet": (
        {"labels": {QOS: "BE"}, "node": ""},
        "Pod shop/web: spec.nodeName is empty: the agent of node one may not evict a pod of another node; no agent may "
        "evict it before it is bound",
    ),
}


@pytest.mark.parametrize(("pod", "expected"), PODS.values(), ids=PODS)
def test_whom_the_agent_of_node_one_may_evict(pod: dict[str, Any], expected: str) -> None:
    assert refusal(StoredPod("shop", "web", **{"node": "one", **pod}), "one") == expected


@pytest.mark.parametrize("node", ["one", "two", ""])
def test_a_token_that_names_no_node(node: str) -> None:
    """Before Kubernetes 1.30: online pods stay, and agents go on with their work."""
    assert refusal(StoredPod("shop", "web", node=node, labels={QOS: "BE"}), "") == ""
    assert refusal(StoredPod("shop", "web", node=node), "") == NOT_ITS_BUSINESS.format("none")

"""ElasticQuotaProfiles: what is made of the nodes that they select."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from kube.dialects.queues import elastic_quota
from kube.dialects.queues.quota_profile import QuotaProfile, differs, made, misread, quota_profile, totals, wanted
from kube.objects import ElasticQuota, ElasticQuotaProfile, Metadata
from model.fault import ConfigurationFault
from model.queue import QuotaCell
from model.resources import ResourceVector

QUOTA = "quota.scheduling.koordinator.sh/"
NODES = [
    ({"pool": "a"}, ResourceVector({"cpu": 8000, "memory": 16 << 30, "nvidia.com/gpu": 8})),
    ({"pool": "a"}, ResourceVector({"cpu": 3500, "memory": 1 << 30})),
    ({"pool": "b"}, ResourceVector({"cpu": 64_000})),
]


def profile(annotations: Any = None, labels: Any = None, **spec: Any) -> ElasticQuotaProfile:
    given = {"quotaName": "tree", "nodeSelector": {"matchLabels": {"pool": "a"}}, **spec}
    told = {key: value for key, value in given.items() if value is not None}
    return ElasticQuotaProfile(Metadata("p", "ns", annotations=annotations, labels=labels), told)


def of_nodes(source: ElasticQuotaProfile) -> tuple[QuotaProfile, ResourceVector]:
    found = quota_profile(source)
    return found, totals(found, NODES)


def test_a_quota() -> None:
    """The root of a tree that has what the nodes have; Koordinator's name of a tree that has none."""
    found, total = of_nodes(profile(quotaLabels={"team": "x"}))
    assert total == ResourceVector({"cpu": 11_500, "memory": 17 << 30, "nvidia.com/gpu": 8})
    assert made(found, total) == {
        "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {
            "namespace": "ns",
            "name": "tree",
            "labels": {
                "team": "x",
                QUOTA + "profile": "p",
                QUOTA + "tree-id": found.labels[QUOTA + "tree-id"],
                QUOTA + "is-root": "true",
            },
            "annotations": {QUOTA + "total-resource": '{"cpu":"11500m","memory":"17Gi","nvidia.com/gpu":"8"}'},
        },
        "spec": {
            "min": {"cpu": "11500m", "memory": "17Gi"},
            "max": {"cpu": "1844674407370955161", "memory": "1844674407370955161"},
        },
    }


def test_the_name_of_a_tree() -> None:
    """FNV-1a, as Koordinator's; a label says another one."""
    known = ElasticQuotaProfile(Metadata("", ""), {"quotaName": "q", "nodeSelector": {}})
    assert quota_profile(known).labels[QUOTA + "tree-id"] == str(_fnv("/"))
    assert quota_profile(profile(labels={QUOTA + "tree-id": "t"})).labels[QUOTA + "tree-id"] == "t"


def _fnv(text: str) -> int:
    """http://www.isthe.com/chongo/tech/comp/fnv/: offset, then xor and multiply for each octet."""
    value = 14695981039346656037
    for octet in text.encode():
        value = (value ^ octet) * 1099511628211 % 2**64
    return value


FIELDS: dict[str, tuple[ElasticQuotaProfile, dict[str, Any]]] = {
    "a ratio": (profile(resourceRatio="0.9"), {"cpu": "10350m", "memory": "16428249907"}),
    "a ratio that is none": (profile(resourceRatio="much"), {"cpu": "11500m", "memory": "17Gi"}),
    "more than all": (profile(resourceRatio="1.5"), {"cpu": "11500m", "memory": "17Gi"}),
    "nothing": (profile(resourceRatio="0"), {"cpu": "11500m", "memory": "17Gi"}),
    "other resources": (
        profile({QUOTA + "resource-keys": '["nvidia.com/gpu","example.com/none"]'}),
        {"nvidia.com/gpu": "8", "example.com/none": "0"},
    ),
    "resources that cannot be read": (profile({QUOTA + "resource-keys": "x"}), {"cpu": "11500m", "memory": "17Gi"}),
    "all nodes": (profile(nodeSelector={}), {"cpu": "75500m", "memory": "17Gi"}),
    "no node": (profile(nodeSelector={"matchLabels": {"pool": "c"}}), {"cpu": "0", "memory": "0"}),
}


@pytest.mark.parametrize("case", FIELDS)
def test_fields(case: str) -> None:
    source, minimum = FIELDS[case]
    assert wanted(*of_nodes(source))["spec"]["min"] == minimum


def test_it_is_a_queue() -> None:
    """What is made is read as a tree that keeps its nodes for itself."""
    found = made(*of_nodes(profile()))
    queue = elastic_quota.queue(msgspec.convert(found, ElasticQuota))
    assert queue is not None and queue.cells["", "cpu"] == QuotaCell(11_500, 11_500, 11_500, weight=11_500)


def test_what_differs() -> None:
    """What others write beside it is theirs."""
    found, total = of_nodes(profile())
    present = msgspec.convert(made(found, total), ElasticQuota)
    patch = wanted(found, total)
    beside = msgspec.structs.replace(
        present,
        metadata=msgspec.structs.replace(present.metadata, labels={**found.labels, "a": "b"}),
        status={"used": {}},
    )
    assert not differs(present, patch) and not differs(beside, patch)
    assert differs(ElasticQuota(Metadata("tree", "ns")), patch)
    assert differs(present, wanted(found, total + ResourceVector({"cpu": 1})))
    assert differs(msgspec.structs.replace(present, spec={**present.spec, "max": {}}), patch)


BAD: dict[str, tuple[ElasticQuotaProfile, str]] = {
    "no quota": (profile(quotaName=""), "spec.quotaName: is empty (write the name of an ElasticQuota)"),
    "no quota at all": (profile(quotaName=None), "spec: "),
    "no selector": (profile(nodeSelector=None), "spec.nodeSelector: is missing (write {} for all nodes)"),
    "a bad selector": (
        profile(nodeSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        "spec.nodeSelector.matchExpressions[0].operator: is 'Is' (write one of In, NotIn",
    ),
    "labels that are none": (profile(quotaLabels={"a": 1}), "spec.quotaLabels['a']: is 1 (expected a text)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_fields(case: str) -> None:
    source, words = BAD[case]
    with pytest.raises(ConfigurationFault) as found:
        quota_profile(source)
    assert str(found.value).startswith(f"ElasticQuotaProfile ns/p: {words}")


RATIOS = {
    "0.9": False,
    "1": False,
    "1.0": False,
    "": False,
    "much": True,
    "2": True,
    "0": True,
    "1e-1": True,
    "1/2": True,
}


@pytest.mark.parametrize("text", RATIOS)
def test_ratios_that_cannot_be_read_are_told(text: str) -> None:
    told = misread(profile(resourceRatio=text))
    assert bool(told) is RATIOS[text] and (not told or "which is no ratio above 0 and up to 1: 1 counts" in told)
    assert quota_profile(profile(resourceRatio="0.25")).ratio == Fraction(1, 4)

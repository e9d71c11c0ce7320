"""Koordinator's ElasticQuota: labels, annotations, min and max."""

from __future__ import annotations

from typing import Any

import pytest
from queue_objects import quota

from kube.dialects.queues.elastic_quota import namespaces, queue, reads_namespaces
from model.fault import ConfigurationFault
from model.queue import Queue, QuotaCell

CPU, MEMORY, GPU = ("", "cpu"), ("", "memory"), ("", "nvidia.com/gpu")
GI = 1 << 30
ENDLESS = "1844674407370955161"


def test_koordinators_example() -> None:
    """min is its own, max the bound and the weight; nothing is kept from others that it does not use."""
    found = queue(quota(min={"cpu": 10, "memory": "20Gi"}, max={"cpu": 40, "memory": "40Gi"}))
    assert found == Queue(
        "research",
        weight=40,
        cells={
            CPU: QuotaCell(0, 10_000, 40_000, weight=40_000),
            MEMORY: QuotaCell(0, 20 * GI, 40 * GI, weight=40 * GI),
        },
        source="ElasticQuota/default/research",
    )


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {"weight": 1, "cells": {}, "parent": ""}),
    "a parent": ({"labels": {"parent": "org"}}, {"parent": "org"}),
    "the root as a parent": ({"labels": {"parent": "koordinator-root-quota"}}, {"parent": ""}),
    "the default as a parent": ({"labels": {"parent": "koordinator-default-quota"}}, {"parent": "default"}),
    "what is not lent is guaranteed": (
        {"labels": {"allow-lent-resource": "false"}, "min": {"cpu": 2}, "max": {"cpu": 4}},
        {"cells": {CPU: QuotaCell(2000, 2000, 4000, weight=4000)}},
    ),
    "Koordinator's own note of what is guaranteed": (
        {"annotations": {"guaranteed": '{"cpu":"3"}'}, "min": {"cpu": 2}, "max": {"cpu": 4}},
        {"cells": {CPU: QuotaCell(3000, 3000, 4000, weight=4000)}},
    ),
    "a weight of its own": (
        {"annotations": {"shared-weight": '{"cpu":"5","memory":"1Gi"}'}, "max": {"cpu": 40, "memory": "8Gi"}},
        {"weight": 5, "cells": {CPU: QuotaCell(0, 0, 40_000, weight=5000), MEMORY: QuotaCell(0, 0, 8 * GI, weight=GI)}},
    ),
    "a resource without a weight borrows nothing": (
        {
            "annotations": {"shared-weight": '{"cpu":"500m"}'},
            "min": {"memory": "1Gi"},
            "max": {"cpu": 4, "memory": "8Gi"},
        },
        {
            "weight": 1,
            "cells": {CPU: QuotaCell(0, 0, 4000, weight=500), MEMORY: QuotaCell(0, GI, 8 * GI, borrowing_limit=0)},
        },
    ),
    "weights of nothing are max": (
        {"annotations": {"shared-weight": '{"cpu":"0"}'}, "max": {"nvidia.com/gpu": 8}},
        {"weight": 8, "cells": {GPU: QuotaCell(0, 0, 8, weight=8)}},
    ),
    "an endless max is no bound, and no weight": (
        {"min": {"cpu": 2}, "max": {"cpu": ENDLESS}},
        {"weight": 1, "cells": {CPU: QuotaCell(0, 2000, None)}},
    ),
    "a min without a max": ({"min": {"cpu": 2}}, {"cells": {CPU: QuotaCell(0, 2000, None)}}),
    "a tree of its own": (
        {
            "labels": {"is-root": "true", "tree-id": "t"},
            "annotations": {"total-resource": '{"cpu":"8","memory":"1Gi","pods":"110"}'},
            "min": {"cpu": 8, "memory": "1Gi"},
            "max": {"cpu": ENDLESS, "memory": ENDLESS},
        },
        {
            "weight": 8,
            "cells": {CPU: QuotaCell(8000, 8000, 8000, weight=8000), MEMORY: QuotaCell(GI, GI, GI, weight=GI)},
        },
    ),
    "a tree that takes nothing from others": (
        {
            "labels": {"is-root": "true", "ignore-default-tree": "true"},
            "annotations": {"total-resource": '{"cpu":"8"}'},
        },
        {"cells": {CPU: QuotaCell(0, 8000, 8000, weight=8000)}},
    ),
    "a total of another quota": ({"annotations": {"total-resource": '{"cpu":"8"}'}}, {"cells": {}}),
}


@pytest.mark.parametrize("case", CASES)
def test_fields(case: str) -> None:
    fields, wanted = CASES[case]
    found = queue(quota(**fields))
    assert found is not None and {name: getattr(found, name) for name in wanted} == wanted


def test_koordinators_own_quotas() -> None:
    """The root is the whole cluster; the default is the queue of pods that name none."""
    assert queue(quota("koordinator-root-quota")) is None
    found = queue(quota("koordinator-default-quota", "kube-system", max={"cpu": 1}))
    assert found is not None and found.name == "default"


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "min above max": (
        {"min": {"cpu": 2}, "max": {"cpu": "1500m"}},
        "spec.min.cpu: is 2, more than spec.max 1500m (lower it, or raise spec.max.cpu)",
    ),
    "no quantity": ({"min": {"cpu": "x"}}, "spec.min.cpu: 'x' is not a quantity"),
    "less than nothing": ({"max": {"cpu": "-1"}}, "spec.max.cpu: '-1' is negative"),
    "weights that cannot be read": (
        {"annotations": {"shared-weight": "{"}},
        "annotation quota.scheduling.koordinator.sh/sh",
    ),
    "a weight that is none": (
        {"annotations": {"shared-weight": '{"cpu":"x"}'}},
        "metadata.annotations[quota.scheduling.koordinator.sh/shared-weight].cpu: 'x' is not a quantity",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_fields(case: str) -> None:
    fields, words = BAD[case]
    with pytest.raises(ConfigurationFault) as found:
        queue(quota(**fields))
    assert str(found.value).startswith(f"ElasticQuota default/research: {words}")


NAMESPACES = {'["a","b"]': ("a", "b"), "": (), "[]": (), "null": (), "a": (), '{"a":1}': (), "[1]": ()}


@pytest.mark.parametrize("text", NAMESPACES)
def test_namespaces(text: str) -> None:
    """What cannot be read names none, and can be told apart."""
    assert namespaces(quota(namespace="kube-system", annotations={"namespaces": text}).metadata) == NAMESPACES[text]
    assert reads_namespaces(text) == (text not in ("a", '{"a":1}', "[1]"))

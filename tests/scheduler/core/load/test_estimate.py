"""Estimates come out as Koordinator's own tests have them (estimator/default_estimator_test.go)."""

from __future__ import annotations

from typing import Any

import pytest
from scheduler_builders import pod

from model.pod.colocation import LoadTerms
from model.qos import PriorityBand
from model.report import Usage
from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY, ResourceVector
from scheduler.core.load.estimate import estimate, estimated_until
from scheduler.core.load.policy import LoadPolicy
from scheduler.core.snapshot.podclass import class_of

GIB = 1 << 30
NATIVE = {CPU: 4000, MEMORY: 8 * GIB}
BATCH = {BATCH_CPU: 4000, BATCH_MEMORY: 8 * GIB}
MID = {MID_CPU: 4000, MID_MEMORY: 8 * GIB}
WIDE = {CPU: 8000, MEMORY: 8 * GIB}
DEFAULT = LoadPolicy()
OWN = LoadTerms(scaling_pct=((CPU, 100),))

# name, requests, limits, band, policy, terms, cpu, memory
CASES = [
    ("asks for nothing", {"pods": 1}, {}, PriorityBand.PROD, DEFAULT, LoadTerms(), 250, 200 << 20),
    ("guaranteed", NATIVE, NATIVE, PriorityBand.PROD, DEFAULT, LoadTerms(), 3400, 6012954214),
    ("burstable counts by its limit", NATIVE, WIDE, PriorityBand.PROD, DEFAULT, LoadTerms(), 6800, 6012954214),
    ("request only", NATIVE, {}, PriorityBand.PROD, LoadPolicy(cpu_factor_pct=80, memory_factor_pct=80), LoadTerms(), 3200, 6871947674),
    ("a factor above 100 stops at the limit", NATIVE, NATIVE, PriorityBand.PROD, LoadPolicy(cpu_factor_pct=110), LoadTerms(), 4000, 6012954214),
    ("a batch pod is read by batch resources", BATCH, BATCH, PriorityBand.BATCH, DEFAULT, LoadTerms(), 3400, 6012954214),
    ("a batch pod's native request says nothing", NATIVE, NATIVE, PriorityBand.BATCH, DEFAULT, LoadTerms(), 250, 200 << 20),
    ("a mid pod is read by mid resources", MID, MID, PriorityBand.MID, DEFAULT, LoadTerms(), 3400, 6012954214),
    ("a free pod counts by its native request", NATIVE, NATIVE, PriorityBand.FREE, DEFAULT, LoadTerms(), 3400, 6012954214),
    ("own factors where pods may have them", NATIVE, {}, PriorityBand.PROD, LoadPolicy(custom_estimates=True), OWN, 4000, 6012954214),
    ("own factors where they may not", NATIVE, {}, PriorityBand.PROD, DEFAULT, OWN, 3400, 6012954214),
]  # fmt: skip


@pytest.mark.parametrize(
    ("requests", "limits", "band", "policy", "terms", "cpu", "memory"),
    [c[1:] for c in CASES],
    ids=[c[0] for c in CASES],
)
def test_estimate(
    requests: dict[str, int],
    limits: dict[str, int],
    band: PriorityBand,
    policy: LoadPolicy,
    terms: LoadTerms,
    cpu: int,
    memory: int,
) -> None:
    one = class_of(pod(requests=requests, limits=ResourceVector(limits), band=band, load=terms))
    assert estimate(one, policy) == Usage(cpu, memory)


UNTIL = [
    ("nothing says so", DEFAULT, {}, 0.0),
    ("after it was scheduled", LoadPolicy(after_scheduled_seconds=30), {}, 130.0),
    ("after it was initialised", LoadPolicy(after_scheduled_seconds=30, after_initialized_seconds=5), {"initialized_seconds": 150.0}, 155.0),
    ("not initialised yet", LoadPolicy(after_scheduled_seconds=30, after_initialized_seconds=5), {}, 130.0),
    ("its own words", LoadPolicy(custom_estimates=True), {"load": LoadTerms(after_scheduled_seconds=7)}, 107.0),
    ("its own words are not asked for", DEFAULT, {"load": LoadTerms(after_scheduled_seconds=7)}, 0.0),
    ("its own 0 overrides the setting", LoadPolicy(custom_estimates=True, after_scheduled_seconds=30), {"load": LoadTerms(after_scheduled_seconds=0)}, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "fields", "wanted"), [c[1:] for c in UNTIL], ids=[c[0] for c in UNTIL])
def test_estimated_until(policy: LoadPolicy, fields: dict[str, Any], wanted: float) -> None:
    assert estimated_until(pod(**fields), 100.0, policy) == wanted

"""Profiles that would refuse every pod are refused themselves; what will surprise their writer is told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import BATCH_SPEC, Cluster, profile

from admission.check_result import CheckResult
from admission.documents import check


def profile_check(*others: Any, old: bytes | None = None, **spec: Any) -> CheckResult:
    raw = msgspec.json.encode({"metadata": {"name": "batch"}, "spec": spec})
    found = check("config.koordinator.sh", "ClusterColocationProfile", raw, old, Cluster(*others))
    assert found is not None
    return found


def test_the_usual_profile_is_fine() -> None:
    """S27."""
    assert profile_check(**BATCH_SPEC) == CheckResult()


PROFILES: dict[str, tuple[dict[str, Any], str]] = {
    "a selector": ({"selector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}, "spec.selector"),
    "a probability": ({"probability": "often"}, "spec.probability: is 'often'"),
    "more than all": ({"probability": 101}, "spec.probability: is 101"),
    "a class": ({"qosClass": "XL"}, "spec.qosClass"),
    "a label key": ({"labels": {"a b": "1"}}, "'a b' is no valid key"),
    "a label value": ({"labels": {"a": "b c"}}, "'b c' is no valid label value"),
    "an annotation key": ({"annotations": {"/x": ""}}, "'/x' is no valid key"),
    "a target key": ({"labelKeysMapping": {"a": ""}}, "labelKeysMapping: '' is no valid key"),
    "a patch": ({"patch": {"spec": {"containers": [{"image": "x"}]}}}, "spec.patch: map"),
    "BE and prod": ({"qosClass": "BE", "priorityClassName": "koord-prod"}, "cannot be used in combination"),
}


@pytest.mark.parametrize(("spec", "words"), PROFILES.values(), ids=PROFILES)
def test_profiles_that_would_refuse_every_pod(spec: dict[str, Any], words: str) -> None:
    """They are not accepted."""
    (refusal,) = profile_check(**spec).refusals
    assert words in refusal


def test_surprises_of_a_profile_are_told() -> None:
    """A missing class, and labels by which profiles select."""
    other = profile("other", selector={"matchLabels": {"x": "1"}})
    found = profile_check(other, priorityClassName="gone", labels={"x": "1"})
    assert found.refusals == ()
    assert ["PriorityClass gone does not exist" in found.warnings[0], "profile other selects" in found.warnings[1]] == [
        True,
        True,
    ]

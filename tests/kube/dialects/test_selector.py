"""Label selectors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.selector import LabelSelector

LABELS = {"pool": "batch", "zone": "a"}


def requirement(operator: str, *values: str, key: str = "pool") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


CASES: dict[str, tuple[dict[str, Any], bool]] = {
    "empty matches everything": ({}, True),
    "one label": ({"matchLabels": {"pool": "batch"}}, True),
    "another value": ({"matchLabels": {"pool": "online"}}, False),
    "all labels must match": ({"matchLabels": {"pool": "batch", "zone": "b"}}, False),
    "In": (requirement("In", "online", "batch"), True),
    "In, another value": (requirement("In", "online"), False),
    "In, no such label": (requirement("In", "batch", key="none"), False),
    "NotIn": (requirement("NotIn", "online"), True),
    "NotIn, the value": (requirement("NotIn", "batch"), False),
    "NotIn, no such label": (requirement("NotIn", "batch", key="none"), True),
    "Exists": (requirement("Exists"), True),
    "Exists, no such label": (requirement("Exists", key="none"), False),
    "DoesNotExist": (requirement("DoesNotExist"), False),
    "DoesNotExist, no such label": (requirement("DoesNotExist", key="none"), True),
    "labels and expressions both": ({"matchLabels": {"zone": "a"}, **requirement("In", "online")}, False),
}


@pytest.mark.parametrize(("selector", "expected"), CASES.values(), ids=CASES.keys())
def test_matching(selector: dict[str, Any], expected: bool) -> None:
    """As Kubernetes does: NotIn and DoesNotExist hold where the label is missing."""
    assert msgspec.convert(selector, LabelSelector).in_model().matches(LABELS) is expected


@pytest.mark.parametrize("selector", [requirement("In"), requirement("NotIn"), requirement("Exists", "x")])
def test_an_operator_has_the_values_it_needs(selector: dict[str, Any]) -> None:
    """Kubernetes refuses such a selector too."""
    with pytest.raises(msgspec.ValidationError, match="In and NotIn need values"):
        msgspec.convert(selector, LabelSelector)

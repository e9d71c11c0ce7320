"""Label selectors."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kube.dialects.documents.selector import LabelSelector, selector_of

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


TEXTS: dict[str, tuple[str, dict[str, str], bool]] = {
    "equal": ("a=b", {"a": "b"}, True),
    "equal, doubled": ("a==b", {"a": "c"}, False),
    "not equal holds without the key": ("a!=b", {}, True),
    "in": ("a in (b, c)", {"a": "c"}, True),
    "notin": ("a notin (b,c)", {"a": "c"}, False),
    "there": ("a", {"a": ""}, True),
    "not there": ("!a", {"a": ""}, False),
    "all of them": ("a in (b,c),d!=e,!f", {"a": "b", "d": "x"}, True),
    "an empty value": ("a=", {"a": ""}, True),
    "nothing matches everything": ("", {"x": "y"}, True),
}


@pytest.mark.parametrize(("text", "labels", "matches"), TEXTS.values(), ids=TEXTS)
def test_a_selector_as_kubectl_takes_it(text, labels, matches):
    assert selector_of(text).matches(labels) is matches


@pytest.mark.parametrize("text", ["a=b=c", "a in b", "a b", "=b", "a in (b", "!"])
def test_text_that_is_no_selector(text):
    with pytest.raises(ValueError, match="is no requirement"):
        selector_of(text)

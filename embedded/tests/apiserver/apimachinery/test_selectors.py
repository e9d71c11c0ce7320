"""Label and field selectors."""

import pytest

from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS, PODS
from embedded.apiserver.apimachinery.selectors import Filter, admits, parse_fields, parse_label_selector, parse_labels
from embedded.apiserver.apimachinery.status import StatusError

LABELS = {"app": "web", "tier": "front", "size": "3", "example.com/team": "x"}

LABEL_CASES = {
    "empty": ("", True),
    "equal": ("app=web", True),
    "double equal": ("app==web", True),
    "other value": ("app=db", False),
    "not equal": ("app!=db", True),
    "not equal to absent": ("nothing!=x", True),
    "two terms": ("app=web,tier=front", True),
    "two terms, one fails": ("app=web,tier=back", False),
    "in": ("tier in (back, front)", True),
    "in without the value": ("tier in (back)", False),
    "notin": ("tier notin (back,side)", True),
    "notin of an absent key": ("nothing notin (a)", True),
    "exists": ("app", True),
    "exists with a prefix": ("example.com/team", True),
    "absent": ("!nothing", True),
    "absent but there": ("!app", False),
    "set then equality": ("tier in (front,back),app=web", True),
    "greater": ("size>2", True),
    "less": ("size<3", False),
    "greater than text": ("app>2", False),
    "empty value": ("app=", False),
    "spaces": (" app = web , tier = front ", True),
}


@pytest.mark.parametrize(("text", "expected"), LABEL_CASES.values(), ids=LABEL_CASES)
def test_label_selectors_match_as_kubernetes_does(text, expected):
    """Each form of the grammar admits what it says."""
    assert admits(parse_labels(text), LABELS) is expected


@pytest.mark.parametrize(
    "text",
    ["a=(", "a in b", "a=b c", "=b", "-a=b", "a,,b", "a in (b", "a==b==c", "a>x", "a<", "!", "a notin b", "x/y/z"],
)
def test_malformed_label_selectors_are_refused(text):
    """A selector that cannot be understood is 400, not everything and not nothing."""
    with pytest.raises(StatusError) as refused:
        parse_labels(text)
    assert refused.value.code == 400


FIELD_CASES = {
    "name": ("metadata.name=a", True),
    "node": ("spec.nodeName=n1", True),
    "not phase": ("status.phase!=Failed", True),
    "kubectl describe node": ("spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed", True),
    "no node": ("spec.nodeName=", False),
    "double equal": ("metadata.name==a", True),
    "empty terms": (",metadata.name=a,", True),
    "escaped equals sign and comma": ("metadata.name!=a\\,b\\=c,status.phase=Running", True),
}


@pytest.mark.parametrize(("text", "expected"), FIELD_CASES.values(), ids=FIELD_CASES)
def test_field_selectors_match(text, expected):
    """Fields are compared as text; an unset one is the empty text."""
    fields = {"metadata.name": "a", "spec.nodeName": "n1", "status.phase": "Running"}
    assert Filter(fields=parse_fields(text, PODS)).admits("default", {}, fields) is expected


REFUSED_FIELDS = {
    "unknown field": ("spec.image=x", PODS, "field label not supported: spec.image"),
    "type without fields": (
        "spec.nodeName=x",
        CONFIG_MAPS,
        '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    "no comparison": ("nonsense", PODS, "invalid selector: 'nonsense'; can't understand 'nonsense'"),
    "unescaped": (
        "metadata.name=a=b",
        PODS,
        "invalid selector: 'metadata.name=a=b'; can't understand 'metadata.name=a=b'",
    ),
}


@pytest.mark.parametrize(("text", "rtype", "message"), REFUSED_FIELDS.values(), ids=REFUSED_FIELDS)
def test_fields_that_cannot_be_selected_by_are_refused(text, rtype, message):
    """Selecting by a field that is not indexed is 400, in the words of a real server."""
    with pytest.raises(StatusError) as refused:
        parse_fields(text, rtype)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_a_label_selector_object_knows_absent_from_empty():
    """An absent selector selects nothing; an empty one everything."""
    assert parse_label_selector(None) is None
    assert admits(parse_label_selector({}), {})
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
    }
    assert admits(parse_label_selector(selector), LABELS)
    assert not admits(parse_label_selector(selector), {"app": "db"})

"""Query options that Kubernetes refuses."""

import pytest

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.query_options import check_options

PODS = "/api/v1/namespaces/default/pods"
LIST = 'ListOptions.meta.k8s.io "" is invalid: '
REFUSED = {
    "limit": ("GET", {"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
    "limit beyond 64 bits": ("GET", {"limit": "9" * 30}, 400, "value out of range"),
    "limit of thousands of digits": ("GET", {"limit": "9" * 5000}, 400, "value out of range"),
    "timeout": ("GET", {"timeoutSeconds": "1s"}, 400, 'strconv.ParseInt: parsing "1s": invalid syntax'),
    "match without version": (
        "GET",
        {"resourceVersionMatch": "Exact"},
        422,
        LIST + "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    "unknown match": (
        "GET",
        {"resourceVersionMatch": "Foo", "resourceVersion": "1"},
        422,
        'resourceVersionMatch: Unsupported value: "Foo": supported values: "Exact", "NotOlderThan", ""',
    ),
    "exactly zero": (
        "GET",
        {"resourceVersionMatch": "Exact", "resourceVersion": "0"},
        422,
        'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
    ),
    "initial events of a list": ("GET", {"sendInitialEvents": "true"}, 422, "sendInitialEvents is forbidden for list"),
    "initial events without match": (
        "GET",
        {"watch": "1", "sendInitialEvents": "true"},
        422,
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
    ),
    "match of a watch": (
        "GET",
        {"watch": "1", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        422,
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    ),
    "continue and version": (
        "GET",
        {"continue": "abc", "resourceVersion": "5"},
        400,
        "specifying resource version is not allowed when using continue",
    ),
    "included object": ("GET", {"includeObject": "Some"}, 400, "must be 'Metadata', 'Object', 'None', or empty"),
    "dry run": (
        "POST",
        {"dryRun": "Yes"},
        422,
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Yes"]: supported values: "All"',
    ),
    "validation": (
        "PUT",
        {"fieldValidation": "Foo"},
        422,
        'UpdateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": '
        'supported values: "", "Ignore", "Strict", "Warn"',
    ),
    "long manager": (
        "POST",
        {"fieldManager": "m" * 129},
        422,
        "fieldManager: Too long: may not be more than 128 bytes",
    ),
    "unprintable manager": ("POST", {"fieldManager": "a\n"}, 422, "invalid character U+000A (at position 1)"),
    "force": ("PATCH", {"force": "true"}, 422, "force: Forbidden: may not be specified for non-apply patch"),
    "propagation": (
        "DELETE",
        {"propagationPolicy": "Foo"},
        422,
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": '
        'supported values: "Foreground", "Background", "Orphan", "nil"',
    ),
    "orphans and propagation": (
        "DELETE",
        {"propagationPolicy": "Orphan", "orphanDependents": "true"},
        422,
        "orphanDependents and deletionPropagation cannot be both set",
    ),
}


@pytest.mark.parametrize(("method", "query", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_options_are_refused_as_kubernetes_refuses_them(method, query, code, words):
    """400 for what cannot be read, 422 for what is not allowed."""
    with pytest.raises(StatusError) as refused:
        check_options(Request(method, PODS, query), collection=True)
    assert refused.value.code == code
    assert words in refused.value.message


ALLOWED = {
    "nothing": ("GET", {}),
    "a negative limit is none": ("GET", {"limit": "-1"}),
    "watch is on unless false": (
        "GET",
        {"watch": "maybe", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"},
    ),
    "unknown options are ignored": ("GET", {"frob": "x"}),
    "version zero with continue": ("GET", {"continue": "abc", "resourceVersion": "0"}),
    "all of a write": ("POST", {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "me"}),
    "deletion": ("DELETE", {"propagationPolicy": "Foreground", "gracePeriodSeconds": "0", "dryRun": "All"}),
}


@pytest.mark.parametrize(("method", "query"), ALLOWED.values(), ids=ALLOWED)
def test_other_options_pass(method, query):
    """Without an error."""
    check_options(Request(method, PODS, query), collection=True)


def test_an_apply_needs_a_manager():
    """422 even when there is no query at all."""
    request = Request("PATCH", PODS + "/p", {}, {"content-type": "application/apply-patch+yaml"})
    with pytest.raises(StatusError) as refused:
        check_options(request)
    assert (
        refused.value.message
        == 'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )


def test_the_server_checks_options_before_anything_else(api):
    """An object that does not exist is not looked for."""
    code, status = api.call("DELETE", f"{PODS}/nobody?propagationPolicy=Foo")
    assert (code, status["details"]["kind"], status["details"]["group"]) == (422, "DeleteOptions", "meta.k8s.io")
    assert api.call("GET", f"{PODS}?limit=x")[0] == 400

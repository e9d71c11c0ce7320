"""Options of a request for a log."""

import pytest

from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.log_options import check_log_options

GOOD = {
    "none": {},
    "the least": {"tailLines": "0", "limitBytes": "1", "sinceSeconds": "1"},
    "a time": {"sinceTime": "2030-01-01T00:00:00Z", "tailLines": "5"},
    "empty": {"tailLines": "", "sinceSeconds": "", "sinceTime": "2030-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("query", GOOD.values(), ids=GOOD)
def test_options_in_their_bounds_pass(query):
    """And an option without a value is none."""
    check_log_options("p", query)


BOTH = {"sinceTime": "2030-01-01T00:00:00Z", "sinceSeconds": "0"}
FORBIDDEN = {
    "tailLines": ({"tailLines": "-1"}, ["tailLines"]),
    "limitBytes": ({"limitBytes": "0"}, ["limitBytes"]),
    "sinceSeconds": ({"sinceSeconds": "0"}, ["sinceSeconds"]),
    "two": ({"sinceSeconds": "-1", "tailLines": "-2"}, ["tailLines", "sinceSeconds"]),
    "two beginnings": (BOTH, [""]),
}


@pytest.mark.parametrize(("query", "fields"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_options_out_of_bounds_are_invalid(query, fields):
    """422 of kind PodLogOptions, which names the pod and each wrong option."""
    with pytest.raises(StatusError) as refused:
        check_log_options("p", query)
    details = refused.value.details
    assert (refused.value.code, details["kind"], details["name"]) == (422, "PodLogOptions", "p")
    assert [cause["field"] for cause in details["causes"]] == fields


def test_the_words_are_those_of_kubernetes():
    """Kind, name, field, value and why."""
    told = 'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'
    with pytest.raises(StatusError) as refused:
        check_log_options("p", {"tailLines": "-1"})
    assert refused.value.message == told


@pytest.mark.parametrize("text", ["x", "1.5", "9" * 30])
def test_what_is_no_number_is_a_bad_request(text):
    """400, before any bound is looked at."""
    with pytest.raises(StatusError) as refused:
        check_log_options("p", {"limitBytes": text})
    assert refused.value.code == 400

"""Sets of completion indexes as text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.validation.completion_indexes import index_count, index_text, parse_indexes


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((4, 3), "3,4"), ((1, 3, 4, 5, 7), "1,3-5,7"), ((0, 1, 2), "0-2")],
)
def test_as_kubernetes_writes_them(numbers, text):
    """https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/#JobStatus"""
    assert index_text(numbers) == text


@given(st.frozensets(st.integers(0, 60)))
def test_reading_gives_back_what_was_written(numbers):
    """Whatever the set."""
    assert parse_indexes(index_text(numbers)) == numbers


@pytest.mark.parametrize("text", ["a", "1-", "-2", "1;2"])
def test_what_is_no_such_text_is_refused(text):
    """ValueError, which validation turns into a field error."""
    with pytest.raises(ValueError, match="invalid literal"):
        parse_indexes(text)


@given(st.frozensets(st.integers(0, 60)))
def test_a_set_is_as_large_as_its_text_says(numbers):
    """Without being made."""
    assert index_count(index_text(numbers), 61) == len(numbers)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a", 'cannot convert string to integer for index: "a"'),
        ("1-", 'cannot convert string to integer for index: ""'),
        ("1-2-3", 'the fragment "1-2-3" violates the requirement'),
        ("9", 'too large index: "9"'),
        ("0-99999999999", 'too large index: "99999999999"'),
        ("3,3", "non-increasing order, previous: 3, current: 3"),
        ("2-1", "non-increasing order, previous: 2, current: 1"),
    ],
)
def test_what_no_job_can_have_is_refused(text, words):
    """In kube-apiserver's words."""
    with pytest.raises(ValueError, match=re.escape(words)):
        index_count(text, 9)

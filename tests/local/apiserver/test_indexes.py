"""Sets of completion indexes as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.apiserver.indexes import index_text, parse_indexes


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

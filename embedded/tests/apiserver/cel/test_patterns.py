"""Regular expressions in the syntax of RE2."""

from __future__ import annotations

import pytest

from embedded.apiserver.cel.patterns import fault, found_in


@pytest.mark.parametrize(
    ("text", "pattern", "found"),
    [
        ("abc", "b", True),
        ("abc", "^b", False),
        ("abc", "^abc$", True),
        ("a\nb", "^a$", False),
        ("ß", r"\pL", True),
        ("x" * 5000, "y", False),
        ("x" * 5000 + "y", "y$", True),
    ],
)
def test_found_anywhere(text: str, pattern: str, found: bool) -> None:
    """Long texts and short ones."""
    assert found_in(text, pattern) is found
    assert found_in(text, pattern) is found


@pytest.mark.parametrize("pattern", ["(", "[z-a]", r"(?=x)", r"\1", r"\C", r"\\\C"])
def test_what_is_no_pattern(pattern: str) -> None:
    """Among them what other engines have and RE2 has not."""
    assert fault(pattern).startswith("error parsing regexp: ")


@pytest.mark.parametrize("pattern", ["", "a{2,3}", r"\\C", "(?i)a", "[[:alpha:]]"])
def test_good_patterns(pattern: str) -> None:
    """Nothing is wrong."""
    assert fault(pattern) == ""

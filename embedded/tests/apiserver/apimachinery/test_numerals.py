"""Numbers written as text."""

import pytest

from embedded.apiserver.apimachinery.numerals import natural

TEXTS = {"0": 0, "007": 7, "9" * 20: 10**20 - 1, "9" * 21: None, "9" * 5000: None}
TEXTS |= dict.fromkeys(["", "-1", "+1", "1.0", " 1", "1_0", "\u0661", "\u00b2"])


@pytest.mark.parametrize(("text", "number"), TEXTS.items())
def test_decimal_digits_are_a_number(text, number):
    """Anything else is none, however long."""
    assert natural(text) == number

"""Numbers that clients write as text."""

_MOST_DIGITS = 20  # of any number of 64 bits; Python itself refuses to read thousands of digits


def natural(text: str) -> int | None:
    """The number that a text of decimal digits stands for; None for other texts and more digits than 64 bits need."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None

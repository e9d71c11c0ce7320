"""The random end of names that the server chooses."""

import os

# Letters without vowels and look-alikes, as generated names use them: no words, no 0/O, 1/l confusion.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def random_suffix() -> str:
    """Five letters, some a tenth more likely than others, which is no matter: a name that is taken is not used."""
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in os.urandom(5))

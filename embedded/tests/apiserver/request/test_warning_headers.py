"""Warnings as headers: any text, within bounds."""

import pytest

from embedded.apiserver.request.warning_headers import warning_headers

WRITTEN = {
    "plain": (["unknown field"], ["unknown field"]),
    "quotes": (['field "a\\b"'], ['field \\"a\\\\b\\"']),
    "control characters": (["a\x00b\r\nc\x7f\x85\u2028\ud800"], ["a b  c    "]),
    "other letters": (["größe"], ["größe"]),
    "nothing, and the same twice": (["", "a", "a"], ["a"]),
    "a long one alone": (["x" * 4096], ["x" * 4096]),
    "too long": (["x" * 5000], ["x" * 256]),
    "too long together": (["x" * 4000, "y" * 97], ["x" * 256, "y" * 97]),
    "many long ones": ([chr(0x4E00 + n) * 300 for n in range(60)], [chr(0x4E00 + n) * 256 for n in range(16)]),
    "many short ones": ([f"{n}" for n in range(100)], [f"{n}" for n in range(64)]),
}


@pytest.mark.parametrize(("texts", "told"), WRITTEN.values(), ids=WRITTEN)
def test_every_text_becomes_a_header_that_clients_can_read(texts, told):
    """Code 299, no agent."""
    assert list(warning_headers(texts)) == [("Warning", f'299 - "{text}"') for text in told]

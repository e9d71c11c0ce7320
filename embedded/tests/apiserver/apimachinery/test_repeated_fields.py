"""Bodies whose maps repeat a key."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.apimachinery.repeated_fields import Repeating, decode_json, repeated_fields

REPEATED = {
    "at the top": (b'{"a": 1, "a": 2}', ['duplicate field "a"']),
    "inside": (b'{"a": {"b": 1, "b": 1}}', ['duplicate field "a.b"']),
    "inside a list": (b'{"a": [{}, {"b": 1, "b": 2}]}', ['duplicate field "a[1].b"']),
    "twice": (b'{"a": 1, "a": 2, "b": 1, "b": 1}', ['duplicate field "a"', 'duplicate field "b"']),
    "three times": (b'{"a": 1, "a": 2, "a": 3}', ['duplicate field "a"']),
    "with a colon in a text": (b'{"a": "x:y", "a": "x:y"}', ['duplicate field "a"']),
    "written as an escape": (b'{"a": "\\u003a", "a": 1}', ['duplicate field "a"']),
}


@pytest.mark.parametrize(("body", "told"), REPEATED.values(), ids=REPEATED)
def test_repeated_keys_are_noticed_with_their_paths(body, told):
    """The value is that of a plain decoder, the last one winning."""
    value = decode_json(body)
    assert value == json.loads(body) and isinstance(value, Repeating)
    assert list(repeated_fields(value)) == told
    assert json.loads(msgspec.json.encode(value)) == json.loads(body)


@given(
    st.recursive(
        st.text() | st.integers(-5, 5) | st.none(), lambda item: st.lists(item) | st.dictionaries(st.text(), item)
    )
)
def test_bodies_without_repetition_are_plain_values(value):
    """Whatever the texts hold, colons and escapes included."""
    body = json.dumps(value).encode()
    assert decode_json(body) == value
    assert type(decode_json(body)) is type(value)
    assert list(repeated_fields(decode_json(body))) == []

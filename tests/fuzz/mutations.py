"""Texts that are almost right: bytes, lines, numbers and JSON values changed at random, by a given generator."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

LONGEST_BYTES = 32_768
_NUMBER = re.compile(rb"\d+")
_NUMBERS = (
    *(b"0", b"-1", b"1", b"99", b"00", b"-0", b"1e3", b"1e308", b"1e999", b"1e-999", b".5", b"0x10", b"1_0"),
    *(b"65535", b"65536", b"4294967295", b"9223372036854775807", b"9223372036854775808", b"18446744073709551615"),
    *(b"9" * 20, b"9" * 400, b"9" * 5000, "٣".encode(), b"NaN", b"Infinity", b".inf", b"max"),
)
_TOKENS = (
    *(b"", b" ", b"\n", b"\r\n", b"\t", b"\0", b"\xff", b"\xc2\x85", b"-", b",", b":", b": ", b"=", b"/", b"..", b"%"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b"null", b"true", b"~", b"&a ", b"*a", b"<<: ", b"!!", b"!!int ", b"? "),
    *(b"2001-99-99", b"2001-01-01T25:00:00Z", b"0001-01-01T00:00:00", b"9999-12-31T23:59:59-01:00", b"1:99", b"0b"),
    *(b"5m", b"1h30m", b"Gi", b"m", b"E", b"\\ud800", b"some ", b"full ", b"kB", b"0-65535,", b"0-9999,", b"---\n"),
)
_JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1 << 63, -(1 << 63), 1 << 64, 0.5, -0.5, 1e308, 1e-9, 101, 4.999, "", "x", "-1"),
    *("1e999", "9" * 400, "100m", "1Gi", "0-3", "0-65535", "5m", "9" * 400 + "h", "..", "/", "a/../b", "\n", "é\0"),
    *([], {}, [None], [{}], [[]], {"": None}, {"a": {}}, ["a"], [1], "{}", "[]", "null", "0001-01-01T00:00:00"),
)

Mutation = Callable[[random.Random, bytes], bytes]


def mutated(rng: random.Random, text: bytes, others: Sequence[bytes]) -> bytes:
    """One to four changes of `text`; `others` lend parts."""
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        text = _tree(rng, text) if rng.random() < 0.5 else rng.choice(_MUTATIONS)(rng, text)
        if rng.random() < 0.05:
            text = _cut(rng, text)[0] + _cut(rng, rng.choice(others))[1]
    return text[:LONGEST_BYTES]


def _cut(rng: random.Random, text: bytes) -> tuple[bytes, bytes]:
    at = rng.randint(0, len(text))
    return text[:at], text[at:]


def _span(rng: random.Random, text: bytes) -> tuple[bytes, bytes, bytes]:
    """Before, a short span, after."""
    start = rng.randint(0, len(text))
    end = min(start + int(rng.expovariate(0.2)) + 1, len(text))
    return text[:start], text[start:end], text[end:]


def _replace_span(rng: random.Random, text: bytes) -> bytes:
    before, span, after = _span(rng, text)
    return before + rng.choice((b"", span * 2, bytes([rng.randrange(256)]), rng.choice(_TOKENS))) + after


def _insert_token(rng: random.Random, text: bytes) -> bytes:
    before, after = _cut(rng, text)
    return before + rng.choice(_TOKENS + _NUMBERS) + after


def _number(rng: random.Random, text: bytes) -> bytes:
    found = list(_NUMBER.finditer(text))
    if not found:
        return _insert_token(rng, text)
    start, end = rng.choice(found).span()
    return text[:start] + rng.choice(_NUMBERS) + text[end:]


def _line(rng: random.Random, text: bytes) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    index, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(4)
    if change == 0:
        lines[index], lines[other] = lines[other], lines[index]
    elif change == 1:
        lines[index] = b""
    elif change == 2:
        lines.insert(other, lines[index])
    else:
        lines[index] = lines[index].rstrip() + rng.choice((b"", b" ", b"\n\n", b" 7\n", b"\r\n"))
    return b"".join(lines)


def _truncate(rng: random.Random, text: bytes) -> bytes:
    return _cut(rng, text)[0]


def _repeat(rng: random.Random, text: bytes) -> bytes:
    """Long inputs, for what takes too many steps."""
    before, span, after = _span(rng, text)
    return before + span * rng.choice((100, 2000)) + after


_MUTATIONS: tuple[Mutation, ...] = (
    *(_replace_span, _replace_span, _insert_token, _number, _number, _line, _truncate, _repeat),
)


def _tree(rng: random.Random, text: bytes) -> bytes:
    """A JSON document with one value, key or item changed; other text gets another kind of change."""
    try:
        lines = text.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        document = json.loads(lines[at] if len(lines) > 1 else text)
        if not isinstance(document, dict | list):
            raise ValueError
        changed = json.dumps(_changed(rng, document)).encode()
    except (ValueError, RecursionError):
        return rng.choice(_MUTATIONS)(rng, text)
    if rng.random() < 0.01:
        depth = rng.choice((100, 2000))
        changed = changed.replace(b"null", b"[" * depth + b"]" * depth, 1)
    return b"".join((*lines[:at], changed + b"\n", *lines[at + 1 :])) if len(lines) > 1 else changed


def _changed(rng: random.Random, value: Any) -> Any:
    """`value` with one change somewhere below; text that holds JSON is changed inside."""
    if isinstance(value, str) and value[:1] in ("{", "[") and rng.random() < 0.8:
        try:
            return json.dumps(_changed(rng, json.loads(value)))
        except (ValueError, RecursionError):
            return mutated_text(rng, value)
    if isinstance(value, dict | list) and value and rng.random() < 0.85:
        return _changed_member(rng, value)
    if isinstance(value, str) and rng.random() < 0.5:
        return mutated_text(rng, value)
    return rng.choice(_JUNK)


def _changed_member(rng: random.Random, value: Any) -> Any:
    copy = value.copy()
    key: Any = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
    change = rng.random()
    if change < 0.1:
        del copy[key]
    elif change < 0.2 and isinstance(copy, dict):
        copy[mutated_text(rng, key)] = copy.pop(key)
    elif change < 0.2:
        copy.append(copy[key])
    else:
        copy[key] = _changed(rng, copy[key])
    return copy


def mutated_text(rng: random.Random, text: str) -> str:
    """Text for text."""
    return rng.choice(_MUTATIONS)(rng, text.encode(errors="replace"))[:LONGEST_BYTES].decode(errors="replace")

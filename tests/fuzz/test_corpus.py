"""Every text that once broke a parser, every seed, and some mutations of each keep the contract."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.engine import breach
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS, corpus

_MUTATIONS = 200
CASES = [(name, file) for name in TARGETS for file in corpus(name)]


@pytest.mark.parametrize(("name", "file"), CASES, ids=[f"{name}/{file}" for name, file in CASES])
def test_the_corpus_keeps_the_contract(name: str, file: str) -> None:
    """A sane value or one clear line; a seed is accepted, or it would seed nothing but refusals."""
    text = corpus(name)[file]
    assert breach(TARGETS[name], text) is None
    if file.startswith("seed-"):
        TARGETS[name].parse(text)


@pytest.mark.parametrize("name", TARGETS)
def test_mutations_keep_the_contract(name: str) -> None:
    """The same ones on each run: this is no search, `python -m tests.fuzz` is."""
    texts = list(corpus(name).values())
    rng = random.Random(name)
    assert any(file.startswith("seed-") for file in corpus(name))
    for _ in range(_MUTATIONS):
        text = mutated(rng, rng.choice(texts), texts)
        assert breach(TARGETS[name], text) is None, text[:500]

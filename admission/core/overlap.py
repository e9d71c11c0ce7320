"""Overlap of two label selectors, found without knowing any object.

An object with labels of our choice is looked for that both select. What selectors ask of one label is independent of
what they ask of another, so it is enough to find a value, or absence, for one label at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from model.selector import Operator, Requirement, Selector

_UNHEARD_OF = "\x00"
"""A value that no selector names: it stands for all others."""
_DEMANDING = (Operator.IN, Operator.EXISTS)


def overlap(one: Selector, other: Selector) -> bool:
    """Whether any object could be selected by both."""
    keys = {each.key for each in (*one.requirements, *other.requirements)}
    return all(_satisfiable(_about(key, one, other), key) for key in keys)


def nested(one: Selector, other: Selector) -> bool:
    """Whether an object that has no labels but those that one of the two asks for is selected by both."""
    return _reaches(one, other) or _reaches(other, one)


def _reaches(small: Selector, large: Selector) -> bool:
    demanded = {each.key for each in small.requirements if each.operator in _DEMANDING}
    keys = {each.key for each in (*small.requirements, *large.requirements)}
    return all(_satisfiable(_about(key, small, large), key, key not in demanded) for key in keys)


def _about(key: str, *selectors: Selector) -> list[Requirement]:
    return [each for selector in selectors for each in selector.requirements if each.key == key]


def _satisfiable(requirements: Sequence[Requirement], key: str, only_absent: bool = False) -> bool:
    candidates = [{}] if only_absent else _candidates(requirements, key)
    return any(all(each.holds(labels) for each in requirements) for labels in candidates)


def _candidates(requirements: Sequence[Requirement], key: str) -> Iterator[dict[str, str]]:
    """Absence, a value that is not named, and every one that is: no requirement can tell other values apart."""
    yield {}
    yield {key: _UNHEARD_OF}
    for requirement in requirements:
        yield from ({key: value} for value in requirement.values)

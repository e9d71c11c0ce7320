"""The annotation that says which flavours a pod was given."""

from __future__ import annotations

import pytest

from kube.dialects.queues.placed_flavors import ANNOTATION_FLAVORS, flavors_text, named_flavors

CASES: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "two": ("nvidia.com/gpu=a100, cpu=a100", (("cpu", "a100"), ("nvidia.com/gpu", "a100"))),
    "none": ("", ()),
    "what is none is left out": ("cpu,=a,b=,memory=x", (("memory", "x"),)),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_reading(text: str, wanted: tuple[tuple[str, str], ...]) -> None:
    assert named_flavors({ANNOTATION_FLAVORS: text}) == wanted


def test_what_is_written_is_read() -> None:
    pairs = (("cpu", "a"), ("x.dev/gpu", "b"))
    assert named_flavors({ANNOTATION_FLAVORS: flavors_text(reversed(pairs))}) == pairs


def test_as_many_as_pods_may_name() -> None:
    assert len(named_flavors({ANNOTATION_FLAVORS: ",".join(f"r{n}=f" for n in range(1000))})) == 64

"""Specs and templates of jobs that wait are kept as bytes, and read as what they were."""

from __future__ import annotations

import tracemalloc

import msgspec
import pytest

from kube import objects
from kube.dialects.suspended.packed import PackedTemplate, unpacked, untyped
from kube.dialects.suspended.workload import workload
from model.fault import ConfigurationFault

TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main"}]}}


def test_read_as_it_was() -> None:
    """By name, as a whole, and beside what it was made of."""
    packed = PackedTemplate(TEMPLATE)
    assert packed == TEMPLATE and packed == TEMPLATE and packed == PackedTemplate(packed)
    assert packed["spec"] == TEMPLATE["spec"] and packed.get("status") is None and len(packed) == 2
    assert packed == PackedTemplate(dict(reversed(TEMPLATE.items()))) and packed != PackedTemplate({"spec": {}})


@pytest.mark.parametrize("text", [b"[" * 5000 + b"]" * 5000, b"{"])
def test_unreadable(text: bytes) -> None:
    """Told, and of a job nothing is known."""
    with pytest.raises(ConfigurationFault):
        unpacked(msgspec.Raw(text), "Job a/b: spec")
    assert untyped(objects.UnreadJob(objects.Metadata("b"), msgspec.Raw(text))).spec is None


def test_memory() -> None:
    """A Workload whose template has tens of thousands of small parts takes little more than its text."""
    env = [{"name": f"E{number}"} for number in range(20_000)]
    template = {"spec": {"containers": [{"name": "main", "env": env}]}}
    sets = [{"name": "main", "count": 1, "template": template}]
    text = msgspec.json.encode({"metadata": {"name": "w"}, "spec": {"podSets": sets}})
    tracemalloc.start()
    try:
        source = msgspec.json.decode(text, type=objects.Workload)
        found = workload(source)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.pod_sets[0].template == template
    assert kept < 3 * len(text)

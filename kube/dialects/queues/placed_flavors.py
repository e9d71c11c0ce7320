"""The flavours that a pod was given with its node, as an annotation of ours: `cpu=a100,nvidia.com/gpu=a100`.

Labels of the node do not always tell flavours apart. The annotation counts for flavours whose labels the node has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ANNOTATION_FLAVORS = "sublet.dev/flavors"
_MOST = 64


def named_flavors(annotations: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Pairs of resource and flavour, sorted; what is none is left out."""
    text = annotations.get(ANNOTATION_FLAVORS)
    if not text:
        return ()
    pairs = (each.strip().rpartition("=") for each in text.split(",")[:_MOST])
    return tuple(sorted((resource, flavor) for resource, _, flavor in pairs if resource and flavor))


def flavors_text(flavors: Iterable[tuple[str, str]]) -> str:
    """As the annotation has them."""
    return ",".join(f"{resource}={flavor}" for resource, flavor in sorted(flavors))

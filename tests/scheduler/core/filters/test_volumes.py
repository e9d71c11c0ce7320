"""Which nodes reach a pod's volumes, and why none is tried where a claim says so."""

from __future__ import annotations

import pytest
from filter_builders import cluster, within
from scheduler_builders import node

from model.pod.affinity import NodeTerm
from model.storage import Volume, VolumeClaim
from scheduler.core.filters.volumes import CONFLICT, NO_VOLUME, UNBOUND, missing, refusals
from scheduler.core.snapshot.snapshot import RelatedObjects

ON_A = Volume("on-a", (NodeTerm((within("host", "a"),)),))
ANYWHERE = Volume("anywhere")
CLAIMS = {
    "default/a": VolumeClaim("default", "a", "on-a"),
    "default/any": VolumeClaim("default", "any", "anywhere"),
    "default/lost": VolumeClaim("default", "lost", "gone"),
    "default/open": VolumeClaim("default", "open"),
}
NODES = cluster(
    node("a", labels={"host": "a"}),
    node("b", labels={"host": "b"}),
    claims=CLAIMS,
    volumes={"on-a": ON_A, "anywhere": ANYWHERE},
)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ((), ""),
        (("default/a",), ""),
        (("default/open",), UNBOUND),
        (("default/nobody",), 'persistentvolumeclaim "nobody" not found'),
        (("default/open", "default/nobody"), 'persistentvolumeclaim "nobody" not found'),
    ],
)
def test_why_no_node_is_tried(claims: tuple[str, ...], why: str) -> None:
    """A claim that does not exist is told before one that is not bound."""
    assert missing(RelatedObjects(claims=CLAIMS), claims) == why


@pytest.mark.parametrize(
    ("claims", "wanted"),
    [
        ((), {}),
        (("default/any",), {}),
        (("default/a",), {CONFLICT: "b"}),
        (("default/a", "default/any"), {CONFLICT: "b"}),
        (("default/lost",), {CONFLICT: "", NO_VOLUME: "ab"}),
        (("default/a", "default/lost"), {CONFLICT: "b", NO_VOLUME: "a"}),
    ],
)
def test_rows_that_do_not_reach_a_volume(claims: tuple[str, ...], wanted: dict[str, str]) -> None:
    """Each row has one reason; a volume that is gone refuses all that the others leave."""
    found = refusals(NODES.traits, claims)
    told = {why: "".join(n for n, out in zip(NODES.names, rows, strict=True) if out) for rows, why in found}
    assert told == wanted

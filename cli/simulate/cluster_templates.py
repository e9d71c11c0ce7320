"""Many equal pods as one template: a Pod with annotation `sublet.dev/count` stands for so many, NAME-0, NAME-1, …

Only the template is read and checked; its copies differ in name and uid alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cli.simulate.cluster_objects import Admission
from cli.simulate.manifests import GivenObject
from kube import objects
from model.fault import ConfigurationFault

COUNT = "sublet.dev/count"
MOST = 100_000


def count_of(given: GivenObject) -> int | None:
    """How many pods it stands for, None for an ordinary one. Raises ConfigurationFault naming file and field."""
    told = (given.object.metadata.annotations or {}).get(COUNT)
    if told is None:
        return None
    if not (told.isascii() and told.isdecimal()) or not 0 < int(told) <= MOST:
        where = f"{given.where}: {given.label}: metadata.annotations[{COUNT}]"
        raise ConfigurationFault(where, f"is {told[:60]!r}", f"write a whole number from 1 to {MOST}")
    return int(told)


def copies(template: objects.Pod, count: int, admission: Admission) -> Iterator[objects.Pod]:
    """So many pods like the template, each with a name and a uid of its own."""
    metadata = template.metadata
    annotations = {key: value for key, value in (metadata.annotations or {}).items() if key != COUNT}
    plain = msgspec.structs.replace(metadata, annotations=annotations, uid="")
    for index in range(count):
        own = admission.named(msgspec.structs.replace(plain, name=f"{metadata.name}-{index}"))
        yield msgspec.structs.replace(template, metadata=own)

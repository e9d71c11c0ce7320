"""How large a job that waits whole may be: whoever may write one makes the scheduler place all of its pods, and makes
none. Each bound is one sentence, on the job by its controller and of a Workload where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kube.dialects.jobs.bounds import MOST_POD_BYTES, MOST_PODS, MOST_SPEC_BYTES
from model.fault import ConfigurationFault
from model.suspended.job import PodTemplate

_MOST_SETS, _MOST_DIGITS = 64, 10


def check_pod_sets(found: Iterable[PodTemplate], where: str) -> None:
    """Raises ConfigurationFault where they cannot wait whole, or are larger than a cluster takes."""
    sets, sizes = tuple(found), list[int]()
    if len(sets) > _MOST_SETS:
        raise ConfigurationFault(where, f"has {len(sets)} pod sets", f"write at most {_MOST_SETS}")
    for pods in sets:
        spec = pods.template.get("spec")
        if isinstance(spec, dict) and spec.get("nodeName"):
            told = f"pod set {pods.name} names node {spec['nodeName']}"[:160]
            raise ConfigurationFault(where, told, "leave nodeName out: it gets its nodes with its admission")
        sizes.append(len(msgspec.json.encode(pods.template)))
    if sum(sizes) > MOST_SPEC_BYTES:
        fix = f"write at most {MOST_SPEC_BYTES}; what pods read belongs into a ConfigMap or a volume"
        raise ConfigurationFault(where, f"has templates of {sum(sizes)} bytes", fix)
    count = sum(pods.count for pods in sets)
    if count > MOST_PODS:
        raise ConfigurationFault(where, f"has {count} pods at once", f"write at most {MOST_PODS}")
    total = sum(size * pods.count for size, pods in zip(sizes, sets, strict=True))
    if total > MOST_POD_BYTES:
        told = f"has {count} pods of {total} bytes together"
        raise ConfigurationFault(where, told, f"write at most {MOST_POD_BYTES}: smaller templates, or fewer pods")

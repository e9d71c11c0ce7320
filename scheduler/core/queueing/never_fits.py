"""Never fits: members that the cluster does not hold even where nothing runs."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from model.resources import BATCH_CPU, BATCH_MEMORY, CPU, MEMORY, MID_CPU, MID_MEMORY
from scheduler.core.filters.fit import counts
from scheduler.core.snapshot.podclass import PodClass
from scheduler.core.snapshot.snapshot import Amounts, ClusterSnapshot

_LENT = {BATCH_CPU: CPU, MID_CPU: CPU, BATCH_MEMORY: MEMORY, MID_MEMORY: MEMORY}


def never_fits(snapshot: ClusterSnapshot, most: Amounts, members: Iterable[tuple[PodClass, int]]) -> bool:
    """Whether of one class fewer fit on all nodes than are needed; each class is looked at alone. `most` is `most_of`
    the snapshot.
    """
    return any(
        needed and int(np.minimum(counts(snapshot, most, pod_class), needed).sum()) < needed
        for pod_class, needed in members
    )


def most_of(snapshot: ClusterSnapshot) -> Amounts:
    """What nodes may have at most, node × resource; what they lend changes by the minute, up to all that is theirs."""
    columns = {name: column for column, name in enumerate(snapshot.resources)}
    most = snapshot.allocatable.copy()
    for lent, own in _LENT.items():
        if lent in columns and own in columns:
            np.maximum(most[:, columns[lent]], most[:, columns[own]], out=most[:, columns[lent]])
    return most

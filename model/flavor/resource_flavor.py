"""Resource flavours, and the names by which work of a namespace gets into queues that count by them.

Terms are Kueue's: https://kueue.sigs.k8s.io/docs/concepts/resource_flavor/ and concepts/local_queue/.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from model.node import Taint
from model.pod.spec import Toleration
from model.queue import Cell, QueueState


class ResourceFlavor(msgspec.Struct, frozen=True):
    """Nodes that have all of `node_labels`; a pod of it needs these labels, and gets `tolerations`.

    `taints` are those that its nodes have, which a pod must tolerate by its own word or by `tolerations`. `topology` is
    the name of a Topology, empty without one.
    """

    name: str
    node_labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str = ""


class SubmissionQueue(msgspec.Struct, frozen=True):
    """A name by which work of a namespace gets into `queue` (Kueue's LocalQueue); it has no quota of its own.

    `weight_millis` is its share beside others of the same queue, 1000 where nobody says more, where use over time
    decides. `problem` says why it takes no work, empty where it does.
    """

    namespace: str
    name: str
    queue: str
    state: QueueState = QueueState.OPEN
    weight_millis: int = 1000
    problem: str = ""


class SubmissionStanding(msgspec.Struct, frozen=True):
    """How a LocalQueue stands: what its jobs on nodes use, and what is `reserved` with what is kept for those whose
    victims have not gone yet.

    `consumed` is what it used over time by resource, where its queue serves by that; None elsewhere.
    """

    queue: SubmissionQueue
    pending_jobs: int = 0
    running_jobs: int = 0
    nominated_jobs: int = 0
    used: Mapping[Cell, int] = {}
    reserved: Mapping[Cell, int] = {}
    consumed: Mapping[str, int] | None = None

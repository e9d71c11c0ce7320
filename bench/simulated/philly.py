"""Jobs of the Philly trace on 8-GPU nodes, with a queue for each virtual cluster.

A job of at most 8 GPUs is one pod, a larger one is a gang of pods of 8. What the trace lacks is made: without a
deadline there is none; with `limits` each job's is its run time times a factor from 1 to 3 by its number, as users
ask for more time than they need.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.simulated.job import SimulatedJob
from kube import objects

GPU = "nvidia.com/gpu"
_PER_NODE = 8
_GOLDEN = 0.6180339887498949
_MOST_FACTOR = 3.0


def jobs(path: Path, first: int = 0, last: int | None = None, *, limits: bool = False) -> list[SimulatedJob]:
    """Those from `first` to before `last` in the order of the trace, their times from its begin."""
    with gzip.open(path, "rt") as file:
        rows = list(csv.DictReader(file))[first:last]
    return [_job(number, row, limits=limits) for number, row in enumerate(rows, first)]


def queues(found: list[SimulatedJob]) -> Iterator[Any]:
    """One of ours for each virtual cluster, none with a quota: they share by what they use."""
    for name in sorted({job.namespace for job in found}):
        yield objects.Namespace(objects.Metadata(name=name, uid=f"uid-{name}"))
        yield objects.Queue(objects.Metadata(name=name, uid=f"uid-queue-{name}"), {})


def nodes(count: int) -> list[objects.Node]:
    """Of 8 GPUs each."""
    found = []
    for number in range(count):
        name = f"gpu-{number:03}"
        amounts: dict[str, Any] = {"cpu": 96, "memory": "768Gi", GPU: _PER_NODE, "pods": 110}
        metadata = objects.Metadata(name=name, uid=f"uid-{name}", labels={"kubernetes.io/hostname": name})
        found.append(objects.Node(metadata, objects.NodeSpec(), objects.NodeStatus(amounts, amounts)))
    return found


def _job(number: int, row: dict[str, str], *, limits: bool) -> SimulatedJob:
    gpus, seconds, vc = int(row["gpus"]), max(1.0, float(row["duration_s"])), f"vc-{row['vc']}"
    pods, each = (1, gpus) if gpus <= _PER_NODE else (gpus // _PER_NODE, _PER_NODE)
    factor = 1.0 + (_MOST_FACTOR - 1.0) * ((number * _GOLDEN) % 1.0)
    return SimulatedJob(
        name=f"job-{number}",
        submit_seconds=float(row["submit_s"]),
        run_seconds=seconds,
        request=((GPU, each), ("cpu", each), ("memory", each << 30)),
        pods=pods,
        namespace=vc,
        labels=(("sublet.dev/queue", vc), ("koordinator.sh/qosClass", "BE")),
        priority=5500,
        deadline_seconds=int(seconds * factor) + 60 if limits else None,
    )

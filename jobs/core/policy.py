"""Settings of what is done for jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from model.job.job import JobCommand


class JobPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How jobs are run."""

    enabled: Annotated[
        bool,
        Meta(
            description="Make the pods of TrainingJobs, and of Volcano's Jobs where the definition of these is "
            "annotated sublet.dev/controlled: true, which Volcano's own is not."
        ),
    ] = True
    no_room_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            description="An elastic job gives up pods above its minimum for which no node was found for so long, and "
            "tries again after its cool-down.",
        ),
    ] = 30.0
    restart_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            description="How long a job rests before its pods are made again when it restarts a second time within "
            "ten minutes; twice as long each further time, five minutes at most unless this is more.",
        ),
    ] = 10.0
    kept_events: Annotated[
        int, Meta(ge=0, le=50, description="Events that the status of a job keeps, the newest ones.")
    ] = 20


class JobFacts(msgspec.Struct, frozen=True):
    """What is known beside the job and its pods: the PriorityClasses of the cluster by name, with their values; as how
    long the shortest wait counts after which work goes before others; and commands about the job, whose uids differ.
    """

    classes: Mapping[str, int] = {}
    shortest_wait_seconds: float = 0.0
    commands: tuple[JobCommand, ...] = ()

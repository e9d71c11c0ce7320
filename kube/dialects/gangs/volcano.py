"""Volcano's PodGroup (scheduling.volcano.sh/v1beta1) as a gang.

Members that completed count towards the minimum, as those that run. A minimum below 1 holds nobody back.
Source: volcano.sh/apis pkg/apis/scheduling/v1beta1/types.go; volcano pkg/scheduler/framework (jobStatus), plugins/gang.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from kube.dialects.documents.document import checked
from kube.dialects.gangs import networktopology
from kube.dialects.gangs.membership import USUAL, GangDefaults, wait_seconds
from kube.dialects.sublet.pod_annotations import ANNOTATION_REQUIRED_TOPOLOGY
from kube.objects import Quantities, VolcanoPodGroup, unix_seconds
from model.fault import ConfigurationFault
from model.resources import ResourceVector, parse_resources
from model.workload import Gang, GangMode, GangSource, GangSpec, MatchPolicy

GROUP = "scheduling.volcano.sh"
TASK = "volcano.sh/task-spec"
"""Annotation of a pod: the task of its Job that it does."""
_MOST_TASKS = 64
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    min_member: _Count | None = None
    min_task_member: dict[str, _Count] | None = None
    queue: str | None = None
    priority_class_name: str | None = None
    min_resources: Quantities | None = None
    network_topology: Any = None
    sub_group_policy: Any = None


def volcano_gang(group: VolcanoPodGroup, defaults: GangDefaults = USUAL) -> Gang:
    """A PodGroup; what cannot be read becomes the spec's `problem`, naming object and field."""
    metadata = group.metadata
    where = where_of(group)
    told, spec, resources = _Spec(), GangSpec(0), ResourceVector()
    try:
        told = _spec(group)
        resources = parse_resources(told.min_resources or {}, f"{where}: spec.minResources")
        spec = _gang_spec(group, told, where, defaults)
    except ConfigurationFault as fault:
        spec = GangSpec(0, problem=str(fault))
    return Gang(
        namespace=metadata.namespace,
        name=metadata.name,
        spec=spec,
        uid=metadata.uid,
        created_seconds=unix_seconds(metadata.creation_timestamp),
        source=GangSource.VOLCANO,
        queue=told.queue or "",
        min_resources=resources,
    )


def where_of(group: VolcanoPodGroup) -> str:
    """What messages call it, beside other PodGroups."""
    return f"PodGroup.{GROUP} {group.metadata.namespace}/{group.metadata.name}"


def unmet(group: VolcanoPodGroup) -> Iterator[str]:
    """Fields that are set and not acted on, each with what follows. Raises ConfigurationFault."""
    told = _spec(group)
    if told.network_topology:
        yield (
            "spec.networkTopology: there are no HyperNodes; write annotation "
            f"{ANNOTATION_REQUIRED_TOPOLOGY} with a node label key"
        )
    if told.sub_group_policy:
        yield "spec.subGroupPolicy: its pods are one group"


def _spec(group: VolcanoPodGroup) -> _Spec:
    return checked({} if group.spec is None else group.spec, _Spec, f"{where_of(group)}: spec")


def _gang_spec(group: VolcanoPodGroup, told: _Spec, where: str, defaults: GangDefaults) -> GangSpec:
    tasks = {name: count for name, count in (told.min_task_member or {}).items() if count}
    if len(tasks) > _MOST_TASKS:
        found = f"names {len(tasks)} tasks"
        raise ConfigurationFault(f"{where}: spec.minTaskMember", found, f"name at most {_MOST_TASKS}")
    minimum = told.min_member or 0
    # As in Volcano, tasks that want more together than the whole gang are not looked at.
    counted = tuple(sorted(tasks.items())) if sum(tasks.values()) <= minimum else ()
    return GangSpec(
        min_member=max(1, minimum),
        mode=GangMode.STRICT if minimum else GangMode.NON_STRICT,
        timeout_seconds=defaults.timeout_seconds,
        match=MatchPolicy.WAITING_AND_RUNNING,
        topology=networktopology.levels(group.metadata.annotations or {}, where),
        priority_class=told.priority_class_name or "",
        tasks=counted,
        wait_seconds=wait_seconds(group.metadata.annotations or {}),
    )

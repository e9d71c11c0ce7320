"""Pods that nobody here will ever look at: deleted ones on a node that is gone, new ones for an absent scheduler."""

from __future__ import annotations

from local.apiserver.recorder import record_event
from local.apiserver.registry import NODES, PODS
from local.apiserver.resources import DeleteOptions, Resources
from local.apiserver.selectors import Filter, parse_fields
from local.apiserver.store import Change, Event, Record

_ABSENT_SCHEDULER = "default-scheduler"
_ADVICE = (
    f'no scheduler named "{_ABSENT_SCHEDULER}" runs in the embedded cluster; set spec.schedulerName to koord-scheduler'
)


def end_stranded(resources: Resources, type_id: str, event: Event) -> None:
    """Finish deleting pods whose node does not exist, as the pod garbage collector upstream does."""
    record = event.record
    if type_id == PODS.id and event.change is not Change.DELETED:
        _end(resources, record)
    elif type_id == NODES.id and event.change is Change.DELETED:
        wanted = Filter(fields=parse_fields(f"spec.nodeName={record.name}", PODS))
        for pod in list(resources.store.select(PODS.id, wanted)):
            _end(resources, pod)


def _end(resources: Resources, seen: Record) -> None:
    node = seen.fields["spec.nodeName"]
    if not (seen.deleting and node) or resources.store.get(NODES.id, "", node) is not None:
        return
    held = resources.store.get(PODS.id, seen.namespace, seen.name)
    if held is not None and held.uid == seen.uid:
        resources.delete(PODS, seen.namespace, seen.name, DeleteOptions(grace_seconds=0))


def warn_of_absent_scheduler(resources: Resources, type_id: str, event: Event) -> None:
    """One Event for a new pod that waits for the scheduler whose name is the default, but which does not run here."""
    record = event.record
    if type_id != PODS.id or event.change is not Change.ADDED:
        return
    if record.fields["spec.nodeName"] or record.fields["spec.schedulerName"] != _ABSENT_SCHEDULER:
        return
    pod = resources.decoded(PODS, record)
    record_event(resources, pod, "FailedScheduling", _ADVICE, "apiserver", "Warning")

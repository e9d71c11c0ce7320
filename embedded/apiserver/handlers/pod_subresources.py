"""Sub-resources of pods: binding, eviction, logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import not_supported
from embedded.apiserver.apimachinery.objects import Object, being_deleted, dig, ensure, name_of, set_condition, uid_of
from embedded.apiserver.apimachinery.resource_types import NODES, PODS
from embedded.apiserver.controllers import disruption
from embedded.apiserver.handlers.log_options import check_log_options
from embedded.apiserver.handlers.write_options import check_deletion
from embedded.apiserver.registry.resources import DeleteOptions, Resources, WriteOptions, check_preconditions
from embedded.apiserver.request.messages import Response, Stream


class LogSource(Protocol):
    """Where container logs come from: the node a pod runs on."""

    async def open(self, port: int, path: str, query: Mapping[str, str]) -> Response | Stream:
        """The answer of the node listening on a loopback port; raises StatusError when it does not answer."""
        ...


def bind(
    resources: Resources, namespace: str, name: str, binding: Object, options: WriteOptions | None = None
) -> Object:
    """Assign a pod to a node, once: 409 when it has a node already or is another pod than the caller meant."""
    if dig(binding, "metadata.name") != name:
        raise status.bad_request("name in URL does not match name in Binding object")
    node = str(dig(binding, "target.name") or "")
    if (kind := dig(binding, "target.kind")) not in (None, "", "Node"):
        raise status.bad_request(str(not_supported("target.kind", kind, ("Node", "<empty>"))))
    if not node:
        raise status.bad_request("target.name: Required value: a binding names a node")
    asked_uid = dig(binding, "metadata.uid")

    def assign(pod: Object) -> Object:
        if asked_uid and asked_uid != uid_of(pod):
            why = f"Precondition failed: UID in precondition: {asked_uid}, UID in object meta: {uid_of(pod)}"
            raise status.conflict(PODS, name, why)
        if being_deleted(pod):
            raise status.conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")
        if pod["spec"].get("nodeName"):
            raise status.conflict(PODS, name, f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"')
        if pod["spec"].get("schedulingGates"):
            raise status.conflict(PODS, name, f"pod {name} has non-empty .spec.schedulingGates")
        pod["spec"]["nodeName"] = node
        pod.get("status", {}).pop("nominatedNodeName", None)
        for key in ("annotations", "labels"):
            if added := dig(binding, f"metadata.{key}"):
                ensure(pod["metadata"], key).update(added)
        _drop_condition(pod, "PodScheduled")  # with the reason why it was not
        set_condition(pod, {"type": "PodScheduled", "status": "True"}, resources.clock())
        return pod

    resources.update(PODS, namespace, name, assign, options, subresource="binding")
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(
    resources: Resources, namespace: str, name: str, eviction: Object, request: WriteOptions | None = None
) -> Object:
    """Delete a pod if its disruption budget allows; 429 with cause DisruptionBudget when it does not.

    A dry run is asked for by the request or by the deleteOptions in its body.
    """
    if dig(eviction, "metadata.name") != name:
        raise status.bad_request("name in URL does not match name in Eviction object")
    options = eviction.get("deleteOptions") or {}
    check_deletion(options)
    asked = options.get("preconditions") or {}
    pod = resources.get(PODS, namespace, name)
    check_preconditions(PODS, pod, asked.get("uid"), asked.get("resourceVersion"))
    dry_run = "All" in (options.get("dryRun") or ()) or (request is not None and request.dry_run)
    if not _needs_no_budget(pod):
        disruption.spend(resources, pod, dry_run)
    if not dry_run and not being_deleted(pod):
        wanted = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        resources.update(
            PODS, namespace, name, lambda held: _with_condition(resources, held, wanted), subresource="status"
        )
    resources.delete(PODS, namespace, name, DeleteOptions(options.get("gracePeriodSeconds"), dry_run=dry_run))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def _with_condition(resources: Resources, pod: Object, wanted: Object) -> Object:
    set_condition(pod, wanted, resources.clock())
    return pod


def _drop_condition(pod: Object, kind: str) -> None:
    held = ensure(pod, "status").get("conditions") or []
    pod["status"]["conditions"] = [condition for condition in held if condition.get("type") != kind]


def _needs_no_budget(pod: Object) -> bool:
    """A pod that does not serve yet, or any more, disturbs nothing by going."""
    return being_deleted(pod) or dig(pod, "status.phase") in ("Succeeded", "Failed", "Pending")


async def read_log(
    resources: Resources, source: LogSource | None, namespace: str, name: str, query: Mapping[str, str]
) -> Response | Stream:
    """A container's log, as the node that runs it serves it; nothing (204) of a pod that has no node yet."""
    check_log_options(name, query)
    pod = resources.get(PODS, namespace, name)
    container = container_of(pod, query.get("container", ""))
    node_name = dig(pod, "spec.nodeName")
    if not node_name:
        return Response(204, b"", "text/plain")
    port = dig(resources.find(NODES, "", node_name) or {}, "status.daemonEndpoints.kubeletEndpoint.Port")
    if source is None or not port:
        raise status.not_implemented(
            f'node "{node_name}" serves no logs: it reports no status.daemonEndpoints.kubeletEndpoint.Port, '
            "or this server has no --kubelet-token-file"
        )
    asked = {key: value for key, value in query.items() if key != "container"}
    return await source.open(int(port), f"/containerLogs/{namespace}/{name}/{container}", asked)


def container_of(pod: Object, asked: str) -> str:
    """The container that is asked for, or the only one. Raises 400, in the words of kube-apiserver."""
    spec = pod["spec"]
    names = [c["name"] for c in spec["containers"]]
    everyone = [*names, *(c["name"] for c in spec.get("initContainers") or ())]
    if asked:
        if asked not in everyone:
            raise status.bad_request(f"container {asked} is not valid for pod {name_of(pod)}")
        return asked
    if len(names) > 1:
        choices = " ".join(names)
        inits = " ".join(c["name"] for c in spec.get("initContainers") or ())
        more = f" or one of the init containers: [{inits}]" if inits else ""
        raise status.bad_request(
            f"a container name must be specified for pod {name_of(pod)}, choose one of: [{choices}]{more}"
        )
    return str(names[0])

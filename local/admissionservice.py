"""The Service of the admission program where that is a process of this machine, and not a pod."""

from __future__ import annotations

from pathlib import Path

from embedded.apiserver.admission.webhook_source import ADDRESS_ANNOTATION
from kube.client import KubeClient, PatchKind, path_of
from local import manifests

_NAME = "sublet-admission"


async def publish(kubeconfig: Path, namespace: str, address: str) -> None:
    """Tell the API server where the program listens (HOST:PORT). Raises KubernetesFault."""
    annotations = {ADDRESS_ANNOTATION: f"https://{address}"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _NAME, "annotations": annotations},
        "spec": {"ports": [{"port": 443}]},
    }
    async with await KubeClient.connect(kubeconfig, "sublet-up") as client:
        if not await client.create_missing(path_of("v1/services", namespace=namespace), service):
            path = path_of("v1/services", namespace=namespace, name=_NAME)
            await client.patch(path, {"metadata": {"annotations": annotations}}, PatchKind.MERGE)


async def publish_endpoint(kubeconfig: Path, namespace: str, address: str, port: int) -> None:
    """The same for an API server that asks by the Service's own address. Raises KubernetesFault."""
    metadata = {"name": _NAME, "namespace": namespace}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"ports": [{"port": 443, "targetPort": port}]},
    }
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata | {"labels": {"kubernetes.io/service-name": _NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"port": port, "protocol": "TCP"}],
    }
    async with await KubeClient.connect(kubeconfig, "sublet-up") as client:
        await manifests.apply(client, [service, endpoints])

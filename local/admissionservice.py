"""The Service of the admission program where that is a process of this machine, and not a pod."""

from __future__ import annotations

from pathlib import Path

from kube.client import KubeClient, PatchKind, path_of
from local.apiserver.webhooks_configured import ADDRESS_ANNOTATION
from model.fault import KubernetesFault

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
        try:
            await client.create(path_of("v1/services", namespace=namespace), service)
        except KubernetesFault as fault:
            if fault.status != 409:
                raise
            path = path_of("v1/services", namespace=namespace, name=_NAME)
            await client.patch(path, {"metadata": {"annotations": annotations}}, PatchKind.MERGE)

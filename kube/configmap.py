"""A ConfigMap that a program goes by while it runs."""

from __future__ import annotations

from collections.abc import Callable

from kube import objects
from kube.client import KubeClient
from kube.informer import Change, Informer


def follow(
    client: KubeClient, where: str, on_change: Callable[[Change[objects.ConfigMap]], None]
) -> Informer[objects.ConfigMap]:
    """The one at `where` (NAMESPACE/NAME); its absence is no fault."""
    namespace, _, name = where.partition("/")
    selector = f"metadata.name={name}"
    return Informer(
        client, "v1/configmaps", objects.ConfigMap, namespace=namespace, field_selector=selector, on_change=on_change
    )

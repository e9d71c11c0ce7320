"""All pods of the node, those of the API server and those that mirror what runs on it anyway: who answers for which."""

from __future__ import annotations

import asyncio
from pathlib import Path

from embedded.node.objects.pod import PodObject
from embedded.node.pods.kubelet import Kubelet
from embedded.node.pods.statistics import RunningPod
from embedded.node.ports import ContainerPort
from kube.informer import Change, ChangeKind
from local.node.mirror_pods import Mirrors, is_mirror


class AllPods:
    """Implements logs.server.LogSource and streams.server.Pods. A program that a mirror shows cannot be entered."""

    def __init__(self, kubelet: Kubelet, mirrors: Mirrors) -> None:
        self._kubelet = kubelet
        self._mirrors = mirrors

    def observe(self, change: Change[PodObject]) -> None:
        if is_mirror(change.object):
            self._mirrors.observe(change)
        else:
            self._kubelet.observe(change.object, gone=change.kind is ChangeKind.DELETED)

    def living(self) -> list[RunningPod]:
        """Pods of which something may run."""
        return [*self._kubelet.living(), *self._mirrors.living()]

    def log_file(self, namespace: str, name: str, container: str, *, previous: bool) -> Path | str:
        found = self._mirrors.log_file(namespace, name, container, previous=previous)
        return self._kubelet.log_file(namespace, name, container, previous=previous) if found is None else found

    def running(self, namespace: str, name: str, container: str) -> bool:
        """Whether the container may write more."""
        shown = self._mirrors.running(namespace, name, container)
        if shown is not None:
            return shown
        worker = self._kubelet.worker_of(namespace, name)
        return worker is not None and worker.running(container)

    def container(self, namespace: str, name: str, container: str) -> ContainerPort | str:
        shown = self._mirrors.objection(namespace, name)
        return self._kubelet.container(namespace, name, container) if shown is None else shown

    async def dial(self, namespace: str, name: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        shown = self._mirrors.objection(namespace, name)
        if shown is not None:
            raise OSError(shown)
        return await self._kubelet.dial(namespace, name, port)

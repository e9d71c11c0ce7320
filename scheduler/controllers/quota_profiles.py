"""ElasticQuotas of ElasticQuotaProfiles, kept by the leader at what the nodes have that a profile selects.

An ElasticQuota of the name that is there already is taken over, as Koordinator's controller does; one whose profile is
gone stays as it is. Where Koordinator brought the definition of profiles, its own controller keeps them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from kube import objects
from kube.client import KubeClient, PatchKind, path_of
from kube.dialects.queues import quota_profile
from kube.dialects.queues.quota_profile import QuotaProfile
from kube.dialects.upstream import core_objects
from kube.informer import Change, ChangeKind, Informer
from kube.reconcile import Reconciler
from model.fault import ConfigurationFault, KubernetesFault
from model.resources import ResourceVector

log = structlog.get_logger()

_EVERY_SECONDS = 10.0
"""How often totals are compared, as in Koordinator."""
DEFINITION = "elasticquotaprofiles.quota.koordinator.sh"
_PROFILES = "quota.koordinator.sh/v1alpha1/elasticquotaprofiles"
_QUOTAS = "scheduling.sigs.k8s.io/v1alpha1/elasticquotas"
_CONFLICT, _NOT_FOUND = 409, 404


class QuotaProfiles:
    """`saw_node` takes every change of a Node; `run` writes while `leading`.

    `keeps` tells of a definition whether its objects are ours to act on.
    """

    def __init__(
        self,
        client: KubeClient,
        leading: Callable[[], bool],
        keeps: Callable[[str], Awaitable[bool]],
        *,
        enabled: bool = True,
        every_seconds: float = _EVERY_SECONDS,
    ) -> None:
        self._client = client
        self._leading = leading
        self._keeps = keeps
        self._enabled = enabled
        self._every_seconds = every_seconds
        self._nodes: dict[str, tuple[Mapping[str, str], ResourceVector]] = {}
        self._known: dict[str, QuotaProfile] = {}
        self._profiles = Informer(client, _PROFILES, objects.ElasticQuotaProfile, on_change=self._saw_profile)
        self._quotas = Informer(client, _QUOTAS, objects.ElasticQuota)
        self._reconciler = Reconciler(self._reconcile, leading, self._failed)

    def saw_node(self, change: Change[objects.Node]) -> None:
        """A Node that cannot be read has nothing; the scheduler's cache says so."""
        name = change.object.metadata.name
        self._nodes.pop(name, None)
        if change.kind is ChangeKind.DELETED or not self._enabled:
            return
        try:
            node = core_objects.node(change.object)
        except ConfigurationFault:
            return
        self._nodes[name] = (node.labels, node.allocatable)

    async def run(self) -> None:
        """Never returns, unless there is nothing to do."""
        if not self._enabled:
            return
        async with asyncio.TaskGroup() as group:
            for informer in (self._profiles, self._quotas):
                group.create_task(informer.run())
                await informer.synced.wait()
            group.create_task(self._reconciler.run())
            while True:
                self.compare()
                await asyncio.sleep(self._every_seconds)

    def compare(self) -> None:
        """Look at all profiles once; those whose quota says something else are written."""
        for key in self._known:
            if self._leading() and self._write(key) is not None:
                self._reconciler.add(key)

    def _saw_profile(self, change: Change[objects.ElasticQuotaProfile]) -> None:
        metadata = change.object.metadata
        key = f"{metadata.namespace}/{metadata.name}"
        self._known.pop(key, None)
        if change.kind is ChangeKind.DELETED:
            return
        try:
            self._known[key] = quota_profile.quota_profile(change.object)
        except ConfigurationFault as fault:
            log.error("profile makes no quota", error=str(fault))
        else:
            self._reconciler.add(key)

    def _write(self, key: str) -> tuple[QuotaProfile, ResourceVector, objects.ElasticQuota | None] | None:
        """None where the quota is as it should be, or its profile is gone."""
        profile = self._known.get(key)
        if profile is None:
            return None
        total = quota_profile.totals(profile, self._nodes.values())
        present = self._quotas.items.get(f"{profile.namespace}/{profile.quota}")
        if present is not None and not quota_profile.differs(present, quota_profile.wanted(profile, total)):
            return None
        return profile, total, present

    async def _reconcile(self, key: str) -> None:
        if self._write(key) is None or not await self._keeps(DEFINITION):
            return
        await self._reconciler.led()
        found = self._write(key)
        if found is None:
            return
        profile, total, present = found
        try:
            if present is None:
                path = path_of(_QUOTAS, namespace=profile.namespace)
                await self._client.create(path, quota_profile.made(profile, total))
            else:
                await self._client.patch(*_patched(profile, total, present), PatchKind.MERGE)
        except KubernetesFault as fault:
            if fault.status != _CONFLICT and not (fault.status == _NOT_FOUND and present is not None):
                raise  # another was faster, or it is gone: the watch will say so

    def _failed(self, key: str, fault: KubernetesFault, seconds: float) -> None:
        log.warning("ElasticQuota of a profile not written", profile=key, error=str(fault), retry_seconds=seconds)


def _patched(profile: QuotaProfile, total: ResourceVector, present: objects.ElasticQuota) -> tuple[str, Any]:
    """Only while it is the very object that was seen; resources that the spec has beside are taken out."""
    patch = quota_profile.wanted(profile, total)
    patch["metadata"]["uid"] = present.metadata.uid
    before = present.spec if isinstance(present.spec, dict) else {}
    for field in ("min", "max"):
        known = before.get(field)
        gone = [name for name in known if name not in patch["spec"][field]] if isinstance(known, dict) else []
        patch["spec"][field] |= dict.fromkeys(gone)
    path = path_of(_QUOTAS, namespace=present.metadata.namespace, name=present.metadata.name)
    return path, patch

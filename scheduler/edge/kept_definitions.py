"""Whose objects the scheduler is the controller of: those of definitions that carry an annotation of ours.

Volcano and Koordinator bring definitions of their own, and controllers that write the status of their objects and what
follows from them: there these are only read. Whoever has the definitions and not the controllers annotates them.
"""

from __future__ import annotations

import asyncio
import time

import msgspec

from kube import objects
from kube.client import KubeClient, path_of
from model.fault import KubernetesFault

ANNOTATION = "sublet.dev/controlled"
"""On a definition: `true` where nobody but the scheduler writes the status of its objects, or makes others of them."""
_DEFINITIONS = "apiextensions.k8s.io/v1/customresourcedefinitions"
_AGAIN_SECONDS = 60.0
_NOT_FOR_US = (403, 404)


class _Definition(msgspec.Struct, frozen=True):
    metadata: objects.Metadata = objects.Metadata()


class KeptDefinitions:
    """Asked by the name of a definition; an answer holds for a minute."""

    def __init__(self, client: KubeClient, again_seconds: float = _AGAIN_SECONDS) -> None:
        self._client = client
        self._again_seconds = again_seconds
        self._known: dict[str, tuple[float, bool]] = {}
        self._asking = asyncio.Lock()

    async def keeps(self, definition: str) -> bool:
        """Raises KubernetesFault where the API server cannot say and never said before."""
        async with self._asking:
            known = self._known.get(definition)
            if known is not None and time.monotonic() - known[0] < self._again_seconds:
                return known[1]
            try:
                found = await self._ask(definition)
            except KubernetesFault:
                if known is None:
                    raise
                found = known[1]
            self._known[definition] = (time.monotonic(), found)
            return found

    async def _ask(self, definition: str) -> bool:
        try:
            found = await self._client.get(path_of(_DEFINITIONS, name=definition), _Definition)
        except KubernetesFault as fault:
            if fault.status in _NOT_FOR_US:
                return False
            raise
        return (found.metadata.annotations or {}).get(ANNOTATION) == "true"

"""The certificate that this replica serves, followed from the Secret that the leader writes."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import Mapping

import msgspec
import structlog

from kube.client import KubeClient, path_of
from kube.x509 import KeyPair, described
from model.fault import KubernetesFault

log = structlog.get_logger()

_FIRST_SECONDS = 1.0


class _Secret(msgspec.Struct, frozen=True):
    data: Mapping[str, str] | None = None


class ServingPair:
    """`first` waits until there is one; `follow` yields each later one to `adopt`, for ever."""

    def __init__(self, client: KubeClient, namespace: str, name: str, check_seconds: float) -> None:
        self._client = client
        self._path = path_of("v1/secrets", namespace=namespace, name=name)
        self._check_seconds = check_seconds
        self._pair: KeyPair | None = None
        self._told = ""

    async def first(self) -> KeyPair:
        while (pair := await self._read()) is None:
            await asyncio.sleep(min(_FIRST_SECONDS, self._check_seconds))
        self._pair = pair
        return pair

    async def newer(self) -> KeyPair:
        """The next one that differs from the last. A Secret that is gone or damaged leaves the last one in use."""
        while True:
            await asyncio.sleep(self._check_seconds)
            pair = await self._read()
            if pair is not None and pair != self._pair:
                self._pair = pair
                log.info("certificate renewed")
                return pair

    async def _read(self) -> KeyPair | None:
        try:
            data = (await self._client.get(self._path, _Secret)).data or {}
            pair = KeyPair(b64decode(data.get("tls.crt", "")), b64decode(data.get("tls.key", "")))
            described(pair)
        except (KubernetesFault, ValueError) as error:
            if str(error) != self._told:
                log.warning("no certificate to serve with", secret=self._path, error=str(error))
            self._told = str(error)
            return None
        self._told = ""
        return pair

"""The node's pods from its kubelet, for clusters whose API server should not be asked by every node."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec
import structlog

from agent.readpod import InternalError, read_pod
from agent.settings import PodSource
from kube import objects
from kube.client import KubeClient, decode
from kube.transport import ConfigException, Configuration, Connections
from model.fault import ConfigurationFault, KubernetesFault
from model.pod.pod import Pod

log = structlog.get_logger()

_POLL_SECONDS = 10.0
_TIMEOUT_SECONDS = 3.0
_REST_SECONDS = 1.0
"""However often it is woken, the kubelet is asked at most once a second: its whole list is much for both sides."""


class _PodList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


class KubeletPods:
    """Keeps the newest list; an empty or failed answer keeps the last one, and its age grows.

    Raises ConfigurationFault for a CA file that cannot be used.
    """

    def __init__(self, source: PodSource, user_agent: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = _client(source, user_agent)
        self._monotonic = monotonic
        self._woken = asyncio.Event()
        self._read_at = -math.inf
        self._problems: tuple[str, ...] = ()
        self._known: Mapping[bytes, Pod | str] = {}
        self.pods: tuple[Pod, ...] | None = None
        if source.insecure_skip_verify:
            log.warning("kubelet certificate is not verified", url=source.kubelet_url)

    @property
    def unread(self) -> tuple[str, ...]:
        """What is wrong with each entry of the list that is not used."""
        return tuple(found for found in self._known.values() if isinstance(found, str))

    @property
    def age_seconds(self) -> float:
        """Since the last good answer; infinite before the first."""
        return self._monotonic() - self._read_at

    def wake(self) -> None:
        """Ask now: a pod has come or gone."""
        self._woken.set()

    async def run(self) -> None:
        """Never returns."""
        while True:
            self._woken.clear()
            await self.poll()
            await asyncio.sleep(_REST_SECONDS)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._woken.wait()

    async def poll(self) -> None:
        """Ask once. Whatever goes wrong is logged when it is new, and the last list stays."""
        try:
            payload = await self._client.request("GET", "/pods", timeout_seconds=_TIMEOUT_SECONDS)
            items = decode(payload, _PodList, "GET /pods").items
            if not items:
                raise KubernetesFault("GET /pods", "the kubelet lists no pod, not even the agent's")
            self._take(items)
        except KubernetesFault as fault:
            self._tell((str(fault),), "the last list stays")
            return
        self._read_at = self._monotonic()
        self._tell(self.unread, "its usage counts as the system's, and no more is lent than requested")

    async def close(self) -> None:
        await self._client.close()

    def _take(self, items: Iterable[msgspec.Raw]) -> None:
        """Decode what is new. Between equal answers only the order differs, since the kubelet's is that of a map."""
        found = {}
        for item in items:
            content = blake2b(item, digest_size=16).digest()
            found[content] = self._known.get(content) or _pod(item)
        if found.keys() != self._known.keys():
            pods = (pod for pod in found.values() if isinstance(pod, Pod))
            self.pods = tuple(sorted(pods, key=lambda pod: pod.key))
        self._known = found

    def _tell(self, problems: tuple[str, ...], effect: str) -> None:
        for problem in problems:
            if problem not in self._problems:
                log.error("kubelet answer not used", error=problem, effect=effect)
        self._problems = problems


def _client(source: PodSource, user_agent: str) -> KubeClient:
    configuration = Configuration(host=source.kubelet_url)
    configuration.ssl_ca_cert = source.ca_file or None
    configuration.verify_ssl = not source.insecure_skip_verify
    configuration.client_session_kwargs = {"trust_env": False}
    configuration.refresh_api_key_hook = lambda into: _read_token(Path(source.token_file), into)
    try:
        connections = Connections(configuration, user_agent)
    except OSError as error:
        raise ConfigurationFault(f"pods.ca_file {source.ca_file}", str(error), "give the kubelet's CA") from error

    async def opened() -> Connections:
        return connections

    return KubeClient(opened)


def _pod(item: msgspec.Raw) -> Pod | str:
    """One entry of the list, or why it is not used. Raises KubernetesFault for what is no pod at all."""
    try:
        return read_pod(decode(bytes(item), objects.Pod, "GET /pods"))
    except InternalError as fault:
        log.error("pod unreadable", error=str(fault), exc_info=fault.__cause__)
        return str(fault)
    except ConfigurationFault as fault:
        return str(fault)


def _read_token(file: Path, into: Configuration) -> None:
    """Anything but one word is no token, and must not reach a header. Raises ConfigException naming the file."""
    try:
        (token,) = file.read_text().split()
    except (OSError, ValueError) as error:
        raise ConfigException(f"pods.token_file {file} holds no token: {error}") from error
    into.api_key["BearerToken"] = f"Bearer {token}"

"""The leader's work on certificates: the Secrets, the published authorities, and who the API server trusts.

Every write carries the version that was read, so that two who believe to lead cannot undo each other. What somebody
deleted, damaged or changed is made again at the next turn.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import structlog

from admission.core.certificates import Authorities, AuthorityStep, CertificatePolicy, Validity, step, to_issue
from admission.ports import CertificateMeter
from kube.client import KubeClient, PatchKind, path_of
from kube.x509 import Authority, CertificateFacts, KeyPair, described, described_certificate
from model.fault import KubernetesFault

log = structlog.get_logger()

AUTHORITY = "sublet-ca"
"""Name of the Secret with the authorities, and of the ConfigMap with their certificates."""
CONFIGURATION = "sublet-admission"
"""Name of our webhook configurations of both kinds."""
_SINCE = "sublet.dev/stepped-at"
_BUNDLE = "ca.crt"
_KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
_GROUP = "admissionregistration.k8s.io/v1"
_NOT_FOUND, _CONFLICT = 404, 409


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """What a Service of this name is called within the cluster."""
    within = f"{service}.{namespace}"
    return (service, within, f"{within}.svc", f"{within}.svc.cluster.local")


class KeptAuthorities(msgspec.Struct, frozen=True):
    """The authorities with their keys; the one before has none left."""

    current: KeyPair | None = None
    next: KeyPair | None = None
    previous: bytes = b""
    since_seconds: float = 0.0

    @property
    def bundle(self) -> bytes:
        """Authorities to trust, the signing one first."""
        pairs = [pair.certificate for pair in (self.current, self.next) if pair]
        return b"".join(dict.fromkeys(pem for pem in (*pairs, self.previous) if pem))

    @property
    def published(self) -> dict[str, str]:
        """The data of the ConfigMap."""
        return {_BUNDLE: self.bundle.decode()}

    def authorities(self, published: bool) -> Authorities:
        previous = _certificate_life(self.previous)
        return Authorities(_life(self.current), _life(self.next), previous, self.since_seconds, published)


class _Stored(msgspec.Struct, frozen=True):
    """An object as it was read: nothing but its data is ours."""

    metadata: dict[str, Any]
    data: dict[str, str] | None = None
    type: str = ""


class CertificateKeeper:
    """One turn at a time: at most one step with the authorities, then everything that follows from them."""

    def __init__(self, client: KubeClient, namespace: str, services: Sequence[str], policy: CertificatePolicy) -> None:
        self.authority_expires_seconds = 0.0
        self._client = client
        self._namespace = namespace
        self._wanted = {f"{service}-tls": service_hosts(service, namespace) for service in services}
        self._policy = policy

    async def turn(self, now: float, meter: CertificateMeter) -> None:
        """Raises KubernetesFault where the API server refuses or is away; whoever was first has its way (409)."""
        secret = await self._read("secrets", AUTHORITY)
        kept = _kept(secret)
        leaves = {name: await self._read("secrets", name) for name in self._wanted}
        lives = {name: life for name, leaf in leaves.items() if (life := _life(_pair(leaf, "tls"))) is not None}
        told = await self._read("configmaps", AUTHORITY)
        published = told is not None and told.data == kept.published
        taken = step(now, kept.authorities(published), lives, self._policy)
        if taken is not AuthorityStep.KEEP:
            kept = self._stepped(taken, kept, now, told)
            await self._write("secrets", AUTHORITY, _secret_data(kept), secret, since=now)
            meter.wrote(AUTHORITY)
            log.info("certificate authority", step=taken.value)
        await self._publish(kept, told, meter)
        await self._issue(kept, now, (leaves, lives), meter)

    def _stepped(
        self, taken: AuthorityStep, kept: KeptAuthorities, now: float, told: _Stored | None
    ) -> KeptAuthorities:
        match taken:
            case AuthorityStep.CREATE:
                return KeptAuthorities(self._created(now), previous=_trusted(told, now), since_seconds=now)
            case AuthorityStep.PUBLISH_NEXT:
                return msgspec.structs.replace(kept, next=self._created(now), since_seconds=now)
            case AuthorityStep.PROMOTE_NEXT:
                before = kept.current.certificate if kept.current else b""
                return KeptAuthorities(kept.next, previous=before, since_seconds=now)
            case AuthorityStep.DROP_PREVIOUS:
                return KeptAuthorities(kept.current, since_seconds=now)
        return msgspec.structs.replace(kept, since_seconds=now)

    def _created(self, now: float) -> KeyPair:
        at = datetime.fromtimestamp(now, UTC)
        return Authority.create(f"sublet {at:%Y-%m-%d %H:%M}", at, timedelta(days=self._policy.authority_days)).pair

    async def _publish(self, kept: KeptAuthorities, told: _Stored | None, meter: CertificateMeter) -> None:
        if told is None or told.data != kept.published:
            await self._write("configmaps", AUTHORITY, kept.published, told)
            meter.wrote("bundle")
        for kind in _KINDS:
            if await self._trust(kind, b64encode(kept.bundle).decode()):
                meter.wrote(kind)

    async def _trust(self, kind: str, bundle: str) -> bool:
        """Whether something had to be written; a configuration that is not installed needs nothing."""
        path = path_of(f"{_GROUP}/{kind}", name=CONFIGURATION)
        try:
            found = await self._client.get(path, dict[str, Any])
        except KubernetesFault as fault:
            if fault.status == _NOT_FOUND:
                return False
            raise
        stale = [
            index
            for index, hook in enumerate(found.get("webhooks") or ())
            if (hook.get("clientConfig") or {}).get("caBundle") != bundle
        ]
        if stale:
            version = {"op": "test", "path": "/metadata/resourceVersion", "value": found["metadata"]["resourceVersion"]}
            changes = [
                {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": bundle} for index in stale
            ]
            await self._client.patch(path, [version, *changes], PatchKind.JSON)
            log.info("trusted authorities written", kind=kind, name=CONFIGURATION)
        return bool(stale)

    async def _issue(
        self,
        kept: KeptAuthorities,
        now: float,
        leaves: tuple[Mapping[str, _Stored | None], Mapping[str, Validity]],
        meter: CertificateMeter,
    ) -> None:
        """Sign again what has to be; `leaves` are the Secrets as they were read, and what could be made of them."""
        signer = _life(kept.current)
        if kept.current is None or signer is None:
            return
        self.authority_expires_seconds = signer.not_after
        authority, at = Authority.load(kept.current), datetime.fromtimestamp(now, UTC)
        stored, lives = leaves
        for name in to_issue(now, signer, self._wanted, lives):
            pair = authority.issue(name, self._wanted[name], at, timedelta(days=self._policy.server_days))
            await self._write(
                "secrets", name, _encoded({"tls.crt": pair.certificate, "tls.key": pair.key}), stored[name]
            )
            meter.wrote(name)
            log.info("certificate issued", secret=name, was="there" if name in lives else "missing or damaged")

    async def _read(self, kind: str, name: str) -> _Stored | None:
        try:
            return await self._client.get(path_of(f"v1/{kind}", namespace=self._namespace, name=name), _Stored)
        except KubernetesFault as fault:
            if fault.status == _NOT_FOUND:
                return None
            raise

    async def _write(
        self, kind: str, name: str, data: Mapping[str, str], found: _Stored | None, *, since: float | None = None
    ) -> None:
        """Create, or replace the very version that was read; labels and annotations of others stay."""
        metadata: dict[str, Any] = {**found.metadata} if found else {"name": name, "namespace": self._namespace}
        metadata.pop("managedFields", None)
        if since is not None:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), _SINCE: str(int(since))}
        body: dict[str, Any] = {"apiVersion": "v1", "metadata": metadata, "data": data}
        body["kind"] = "Secret" if kind == "secrets" else "ConfigMap"
        if kind == "secrets":
            body["type"] = found.type if found else "Opaque" if name == AUTHORITY else "kubernetes.io/tls"
        if found is None:
            await self._client.create(path_of(f"v1/{kind}", namespace=self._namespace), body)
        else:
            await self._client.replace(path_of(f"v1/{kind}", namespace=self._namespace, name=name), body)


_END = b"-----END CERTIFICATE-----"


def _kept(secret: _Stored | None) -> KeptAuthorities:
    if secret is None:
        return KeptAuthorities()
    since = str((secret.metadata.get("annotations") or {}).get(_SINCE, ""))
    previous = _decoded(secret, "previous.crt")
    return KeptAuthorities(
        _pair(secret, "ca"),
        _pair(secret, "next"),
        previous if _certificate_life(previous) else b"",
        float(since) if since.isdecimal() else 0.0,
    )


def _trusted(told: _Stored | None, now: float) -> bytes:
    """The authority that clients trust so far, where its Secret was lost: what it signed is still being shown."""
    pem = ((told.data or {}) if told else {}).get(_BUNDLE, "").encode()
    life = _certificate_life(pem)
    return pem[: pem.find(_END) + len(_END)] + b"\n" if life is not None and life.valid(now) else b""


def _secret_data(kept: KeptAuthorities) -> dict[str, str]:
    files = {"previous.crt": kept.previous} if kept.previous else {}
    for name, pair in (("ca", kept.current), ("next", kept.next)):
        if pair is not None:
            files |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key}
    return _encoded(files)


def _encoded(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: b64encode(content).decode() for name, content in files.items()}


def _decoded(secret: _Stored, name: str) -> bytes:
    """Empty where there is nothing, or nothing that can be decoded."""
    try:
        return b64decode((secret.data or {}).get(name, ""))
    except ValueError:
        return b""


def _pair(secret: _Stored | None, name: str) -> KeyPair | None:
    """None, with a word in the log, where what is kept cannot be used."""
    if secret is None or f"{name}.crt" not in (secret.data or {}):
        return None
    pair = KeyPair(_decoded(secret, f"{name}.crt"), _decoded(secret, f"{name}.key"))
    try:
        described(pair)
    except ValueError as error:
        log.error("damaged certificate", secret=secret.metadata.get("name"), key=f"{name}.crt", error=str(error))
        return None
    return pair


def _life(pair: KeyPair | None) -> Validity | None:
    return None if pair is None else _lived(described(pair))


def _certificate_life(pem: bytes) -> Validity | None:
    try:
        return _lived(described_certificate(pem)) if pem else None
    except ValueError:
        return None


def _lived(found: CertificateFacts) -> Validity:
    return Validity(found.not_before, found.not_after, found.key_id, found.signer_id, found.names)

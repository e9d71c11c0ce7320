"""`sublet up --join`: the programs of this machine on an API server that somebody else runs.

    admin's kubeconfig → objects of deploy/ → accounts of nodes and programs → their kubeconfigs

A node is known by a certificate that the cluster's own signer gives to kubelets, scheduler and admission by tokens of
their service accounts. Addresses of pods and Services become this machine's, since a real API server takes no loopback
address for an endpoint.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from embedded.own_files import write_private
from kube import x509
from kube.client import KubeClient, PatchKind, path_of
from local import manifests
from local.accounts import NAMESPACE, kubeconfig_of, service_account_token
from local.choices import Choices
from local.faults import FAULTS
from local.kubeconfig import certified, flattened, kubeconfig
from local.node.mirror_pods import MIRROR
from local.node.mirror_pods import NAMESPACE as PROGRAMS
from local.programkind import ProgramKind
from local.programs import WEBHOOKS, Ready, api_server_at, bootstrap_files, settings_files
from local.routed import take_addresses
from local.rundir import RunDirectory
from local.simnodes.settings import SIMULATED
from model.condition import ConditionStatus
from model.fault import ConfigurationFault, KubernetesFault

_REQUESTS = "certificates.k8s.io/v1/certificatesigningrequests"
_SIGNER = "kubernetes.io/kube-apiserver-client-kubelet"
_SIGNED_SECONDS = 30.0
_LOOK_SECONDS = 0.2
_AUTHENTICATION = path_of("v1/configmaps", namespace="kube-system", name="extension-apiserver-authentication")


class Joining:
    """One stay at one API server: `join` before the programs start, `leave` after they have ended."""

    def __init__(self, run: RunDirectory, choices: Choices, tell: Callable[[str], None]) -> None:
        assert choices.join is not None
        self._run = run
        self._choices = choices
        self._tell = tell
        self._file = choices.join.expanduser().absolute()
        self._held = AsyncExitStack()

    async def join(self) -> Ready:
        """What the embedded API server would report of itself. Raises Fault; then `leave` is still due."""
        admin, address, authority = flattened(self._file)
        write_private(self._run.kubeconfig, admin)
        write_private(self._run.keys / "api-ca.crt", authority)
        async with await KubeClient.connect(self._run.kubeconfig, "sublet-up") as client:
            version = (await client.get("/version", dict))["gitVersion"]
            self._tell(f"joining Kubernetes {version} at {address}")
            await self._prepare(client)
            for slot in self._choices.slots:
                pair = await kubelet_certificate(client, f"sublet-up-{slot.id}", slot.name)
                told = certified(address, authority, pair.certificate, pair.key)
                write_private(kubeconfig_of(self._run, f"{ProgramKind.NODE}{slot.suffix}"), told)
            if not self._choices.bare:
                for program in (ProgramKind.SCHEDULER, ProgramKind.ADMISSION):
                    token = await service_account_token(client, program)
                    write_private(kubeconfig_of(self._run, program), kubeconfig(address, authority, token))
        return api_server_at(address)

    async def _prepare(self, client: KubeClient) -> None:
        if not self._choices.bare:
            await refuse_another(client)
        await take_addresses(self._held, "--join")
        settings = await client.get(_AUTHENTICATION, dict)
        write_private(self._run.keys / "client-ca.crt", settings["data"]["client-ca-file"].encode())
        if not self._choices.bare:
            files = [path for path in bootstrap_files() if path != WEBHOOKS]
            await manifests.apply(client, manifests.documents(files))
            await manifests.make_missing(client, manifests.documents(settings_files()))

    async def leave(self) -> None:
        """Take nodes and webhooks away, which nobody serves any more, and say what else stays."""
        try:
            if self._run.kubeconfig.exists():
                await self._remove()
        except FAULTS as fault:
            self._tell(f"not everything was removed: {fault}")
        finally:
            await self._held.aclose()

    async def _remove(self) -> None:
        async with await KubeClient.connect(self._run.kubeconfig, "sublet-up") as client:
            if not self._choices.bare:
                for each in manifests.documents([WEBHOOKS]):
                    plural = f"{each['kind'].lower()}s"
                    await _gone(client, path_of(f"{each['apiVersion']}/{plural}", name=each["metadata"]["name"]))
            for slot in self._choices.slots:
                await forget_programs(client, slot.name)
                await _gone(client, path_of("v1/nodes", name=slot.name))
            if self._choices.simulated_nodes:
                query = {"labelSelector": f"{SIMULATED}=true"}
                await client.request("DELETE", path_of("v1/nodes"), query=query)
        if not self._choices.bare:
            self._tell("what Sublet defines there stays: `sublet uninstall` removes it")
            self._tell(f"namespace {PROGRAMS} stays with the settings in it: delete it where nobody needs them")


async def forget_programs(client: KubeClient, node: str) -> None:
    """Nobody serves the node's static pods any more; the cluster would take them away minutes later. Raises
    KubernetesFault."""
    pods = path_of("v1/pods", namespace=PROGRAMS)
    listed = await client.get(pods, dict, fieldSelector=f"spec.nodeName={node}")
    for pod in listed["items"]:
        if MIRROR in pod["metadata"].get("annotations", {}):
            await _gone(client, f"{pods}/{pod['metadata']['name']}", grace_seconds=0)


async def refuse_another(client: KubeClient) -> None:
    """Raises ConfigurationFault where Sublet is deployed there: two would decide on the same nodes."""
    try:
        await client.get(path_of("apps/v1/deployments", namespace=NAMESPACE, name="sublet-scheduler"), dict)
    except KubernetesFault as fault:
        if fault.status == 404:
            return
        raise
    fix = "uninstall it first, or join with --bare"
    raise ConfigurationFault("--join", f"namespace {NAMESPACE} of this cluster holds a Sublet already", fix)


async def kubelet_certificate(
    client: KubeClient, name: str, node: str, bound_seconds: float = _SIGNED_SECONDS
) -> x509.KeyPair:
    """Of user system:node:<node>, by the signer of kubelets' client certificates. Raises KubernetesFault."""
    request, key = x509.request(f"system:node:{node}", "system:nodes")
    path = path_of(_REQUESTS, name=name)
    spec = {
        "request": base64.b64encode(request).decode(),
        "signerName": _SIGNER,
        "usages": ["digital signature", "client auth"],
    }
    body: dict[str, Any] = {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest"}
    await _gone(client, path)
    await client.create(path_of(_REQUESTS), body | {"metadata": {"name": name}, "spec": spec})
    approved = {
        "type": "Approved",
        "status": ConditionStatus.TRUE,
        "reason": "SubletUp",
        "message": "a node of sublet up --join",
    }
    await client.patch(f"{path}/approval", {"status": {"conditions": [approved]}}, PatchKind.MERGE)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + bound_seconds
    while not (certificate := (await client.get(path, dict)).get("status", {}).get("certificate")):
        if loop.time() > deadline:
            fix = "does kube-controller-manager run with the cluster's signing key?"
            raise KubernetesFault(path, f"nobody signed it within {bound_seconds:.0f} s", fix)
        await asyncio.sleep(_LOOK_SECONDS)
    await _gone(client, path)
    return x509.KeyPair(base64.b64decode(certificate), key)


async def _gone(client: KubeClient, path: str, grace_seconds: int | None = None) -> None:
    try:
        await client.delete(path, grace_seconds=grace_seconds)
    except KubernetesFault as fault:
        if fault.status != 404:
            raise

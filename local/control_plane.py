"""`sublet up --apiserver`: real etcd, kube-apiserver and kube-controller-manager in place of the embedded API server.

    binaries → keys and certificates → etcd → kube-apiserver → objects of deploy/ → kube-controller-manager

They live as long as `up`, and their state with them. Who may do what is in the token file that the embedded server has,
too. etcd takes nobody without a certificate of an authority of its own: who may write there may run commands on nodes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from embedded.child_process import Child, ProgramFault, how_it_ended
from embedded.own_files import write_private
from kube.client import KubeClient, PatchKind, path_of
from local import manifests
from local.accounts import kubeconfig_of, write_kubeconfigs
from local.certificates import LocalAuthority
from local.choices import Choices, host_and_port
from local.probing import ProbeAddress, unanswered
from local.programs import WEBHOOKS, Ready, api_server_at, bootstrap_files, settings_files
from local.routed import take_addresses
from local.rundir import RunDirectory
from model.condition import ConditionStatus, ConditionType
from model.fault import ConfigurationFault, KubernetesFault

SERVICES = "10.96.0.0/16"
CONTROLLER_MANAGER = "controller-manager"
"""Its user in the token file and its kubeconfig."""
_HERE = "127.0.0.1"
_READY_SECONDS, _STOP_SECONDS, _LOOK_SECONDS = 90.0, 5.0, 0.2
_NODES_SECONDS = 1.0
_NOT_READY = "node.kubernetes.io/not-ready"
_KUBELET_CLIENT = "kube-apiserver-kubelet-client"
_KUBELET_RIGHTS = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "sublet-up:kubelet-client"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:kubelet-api-admin"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": _KUBELET_CLIENT}],
}
_UNATTENDED = (
    "no kube-controller-manager there: nothing collects garbage, ends namespaces, runs Deployments, Jobs and "
    "DaemonSets, makes endpoints and service accounts, or watches whether nodes live"
)


class Binaries(msgspec.Struct, frozen=True):
    """`controller_manager` is None where there is none."""

    apiserver: Path
    etcd: Path
    controller_manager: Path | None = None


def find_binaries(place: Path, search: str | None = None) -> Binaries:
    """Of a folder, or beside the kube-apiserver that `place` is; etcd also on $PATH. Raises ConfigurationFault."""
    place = place.expanduser().absolute()
    folder = place if place.is_dir() else place.parent
    apiserver = folder / "kube-apiserver" if place.is_dir() else place
    if not os.access(apiserver, os.X_OK) or not apiserver.is_file():
        fix = "give the folder with kube-apiserver, or that program itself"
        raise ConfigurationFault(f"--apiserver {place}", f"{apiserver} is no program", fix)
    etcd = shutil.which("etcd", path=str(folder)) or shutil.which("etcd", path=search)
    if etcd is None:
        raise ConfigurationFault(f"--apiserver {place}", f"no etcd in {folder} or on $PATH", "install one there")
    manager = shutil.which("kube-controller-manager", path=str(folder))
    return Binaries(apiserver, Path(etcd), Path(manager) if manager else None)


class ControlPlane:
    """`start` before the other programs, `leave` after they have ended; `wait` ends with the first of its programs."""

    def __init__(self, run: RunDirectory, choices: Choices, tell: Callable[[str], None]) -> None:
        assert choices.apiserver is not None
        self._run = run
        self._choices = choices
        self._tell = tell
        self._binaries = find_binaries(choices.apiserver)
        self._held = AsyncExitStack()
        self._children: list[Child] = []
        self._untainting: asyncio.Task[None] | None = None

    async def start(self, tokens: Mapping[str, str]) -> Ready:
        """What the embedded API server would report of itself. Raises Fault; then `leave` is still due."""
        await take_addresses(self._held, "--apiserver", SERVICES)
        etcd, peers, port = _free_ports(3)
        listen, wanted = host_and_port(self._choices.listen)
        address = f"{listen}:{wanted if wanted != '0' else port}"
        self._write_keys()
        await self._begin("etcd", self._etcd(etcd, peers))
        server = await self._begin("kube-apiserver", self._apiserver(etcd, address))
        await self._served(server, ProbeAddress(listen, int(host_and_port(address)[1]), tls=True))
        write_kubeconfigs(self._run, address, tokens)
        async with await KubeClient.connect(self._run.kubeconfig, "sublet-up") as client:
            version = (await client.get("/version", dict))["gitVersion"]
            self._tell(f"Kubernetes {version} of {self._binaries.apiserver}")
            await manifests.apply(client, [_KUBELET_RIGHTS])
            if not self._choices.bare:
                await manifests.apply(client, manifests.documents(f for f in bootstrap_files() if f != WEBHOOKS))
                await manifests.make_missing(client, manifests.documents(settings_files()))
        if self._binaries.controller_manager is not None:
            await self._begin("kube-controller-manager", self._controller_manager(self._binaries.controller_manager))
        else:
            self._tell(_UNATTENDED)
            self._untainting = asyncio.create_task(self._untaint())
        return api_server_at(address)

    async def wait(self) -> None:
        """Raises ProgramFault once one of them has ended: the cluster's state is theirs."""
        ends = [asyncio.create_task(child.wait()) for child in self._children]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ends:
                each.cancel()
        over = next(child for child in self._children if child.exit_code is not None)
        raise ProgramFault(over.name, how_it_ended(over.exit_code), f"see {over.log}", exit_code=over.exit_code)

    async def leave(self) -> None:
        """The last that was started ends first; the addresses are given back in any case."""
        try:
            if self._untainting is not None:
                self._untainting.cancel()
                await asyncio.gather(self._untainting, return_exceptions=True)
            for child in reversed(self._children):
                await child.stop(_STOP_SECONDS)
        finally:
            await self._held.aclose()

    async def _begin(self, name: str, argv: Sequence[str]) -> Child:
        child = await Child.start(name, argv, self._run.log_of(name))
        self._children.append(child)
        return child

    async def _served(self, server: Child, door: ProbeAddress) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _READY_SECONDS
        while why := await unanswered(door, 5.0, "/readyz"):
            for child in self._children:
                if child.exit_code is not None:
                    raise ProgramFault(child.name, child.last_words(), f"see {child.log}", exit_code=child.exit_code)
            if loop.time() > deadline:
                raise ProgramFault(server.name, f"not ready after {_READY_SECONDS:.0f} s: {why}", f"see {server.log}")
            await asyncio.sleep(_LOOK_SECONDS)

    def _write_keys(self) -> None:
        keys = self._run.keys
        for name in ("etcd", "kubelet-client"):
            authority = LocalAuthority(f"sublet {self._choices.id} {name}")
            client = _KUBELET_CLIENT if name == "kubelet-client" else "kube-apiserver-etcd-client"
            pairs = {f"{name}-client": authority.issue_client(client), name: authority.issue(name)}
            write_private(keys / f"{name}-ca.crt", authority.certificate_pem)
            for file, (certificate, key) in pairs.items():
                write_private(keys / f"{file}.crt", certificate)
                write_private(keys / f"{file}.key", key)
        # Whom nodes believe when somebody comes with a certificate.
        write_private(keys / "client-ca.crt", (keys / "kubelet-client-ca.crt").read_bytes())
        signing, encoding = ec.generate_private_key(ec.SECP256R1()), serialization.Encoding.PEM
        form, secret = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        write_private(keys / "service-accounts.key", signing.private_bytes(encoding, form, secret))
        write_private(keys / "service-accounts.pub", signing.public_key().public_bytes(encoding, public))

    def _etcd(self, port: int, peers: int) -> list[str]:
        own, inner = f"https://{_HERE}:{port}", f"https://{_HERE}:{peers}"
        pair = {"cert-file": "etcd.crt", "key-file": "etcd.key", "trusted-ca-file": "etcd-ca.crt"}
        return [
            str(self._binaries.etcd),
            *(f"--data-dir={self._run.keys / 'etcd-data'}", "--unsafe-no-fsync", "--enable-grpc-gateway=false"),
            *(f"--listen-client-urls={own}", f"--advertise-client-urls={own}"),
            *(f"--listen-peer-urls={inner}", f"--initial-advertise-peer-urls={inner}"),
            f"--initial-cluster=default={inner}",
            *(f"--{side}{key}={self._run.keys / file}" for side in ("", "peer-") for key, file in pair.items()),
            *("--client-cert-auth", "--peer-client-cert-auth"),
        ]

    def _apiserver(self, etcd: int, address: str) -> list[str]:
        keys = self._run.keys
        host, port = host_and_port(address)
        # Without the controller manager no namespace has an account that pods could get.
        off = [] if self._binaries.controller_manager else ["--disable-admission-plugins=ServiceAccount"]
        return [
            str(self._binaries.apiserver),
            *(f"--etcd-servers=https://{_HERE}:{etcd}", f"--etcd-cafile={keys / 'etcd-ca.crt'}"),
            *(f"--etcd-certfile={keys / 'etcd-client.crt'}", f"--etcd-keyfile={keys / 'etcd-client.key'}"),
            *(f"--bind-address={host.strip('[]')}", f"--secure-port={port}"),
            # Nobody is sent there: pods have the address in their environment. Loopback is refused.
            *("--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none"),
            *(f"--tls-cert-file={keys / 'apiserver.crt'}", f"--tls-private-key-file={keys / 'apiserver.key'}"),
            f"--token-auth-file={keys / 'users'}",
            *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", *off),
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys / 'service-accounts.pub'}",
            f"--service-account-signing-key-file={keys / 'service-accounts.key'}",
            f"--service-cluster-ip-range={SERVICES}",
            f"--kubelet-client-certificate={keys / 'kubelet-client-client.crt'}",
            f"--kubelet-client-key={keys / 'kubelet-client-client.key'}",
            "--allow-privileged=true",
        ]

    def _controller_manager(self, program: Path) -> list[str]:
        return [
            str(program),
            f"--kubeconfig={kubeconfig_of(self._run, CONTROLLER_MANAGER)}",
            f"--service-account-private-key-file={self._run.keys / 'service-accounts.key'}",
            f"--root-ca-file={self._run.keys / 'ca.crt'}",
            *("--use-service-account-credentials", "--leader-elect=false", "--secure-port=0"),
        ]

    async def _untaint(self) -> None:
        """What the node life cycle controller would do once: pods may come to a node that has become ready."""
        async with await KubeClient.connect(self._run.kubeconfig, "sublet-up") as client:
            while True:
                with contextlib.suppress(KubernetesFault):
                    for node in (await client.get(path_of("v1/nodes"), dict))["items"]:
                        if (kept := taints_of_ready(node)) is not None:
                            body = {"metadata": {"resourceVersion": node["metadata"]["resourceVersion"]}}
                            path = path_of("v1/nodes", name=node["metadata"]["name"])
                            await client.patch(path, body | {"spec": {"taints": kept}}, PatchKind.MERGE)
                await asyncio.sleep(_NODES_SECONDS)


def taints_of_ready(node: Mapping[str, Any]) -> list[Any] | None:
    """The taints that a ready Node should have where it still has that of one which is not; else None."""
    taints = node.get("spec", {}).get("taints") or []
    conditions = node.get("status", {}).get("conditions") or ()
    ready = any(each["type"] == ConditionType.READY and each["status"] == ConditionStatus.TRUE for each in conditions)
    kept = [taint for taint in taints if taint["key"] != _NOT_READY]
    return kept if ready and len(kept) < len(taints) else None


def _free_ports(count: int) -> list[int]:
    """Of loopback, different ones; somebody else may take one before it is used, and the program then says so."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((_HERE, 0))
        return [each.getsockname()[1] for each in sockets]

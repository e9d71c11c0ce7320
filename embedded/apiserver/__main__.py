"""`python -m embedded.apiserver`: the embedded API server as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import ipaddress
import logging
import os
import signal
import ssl
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

from embedded.apiserver.authentication.authenticator import Credentials
from embedded.apiserver.authentication.signing_key import SigningKey, SigningKeyError
from embedded.apiserver.authentication.token_file import TokenFile, TokenFileError, certificate_names
from embedded.apiserver.authorization.bootstrap_roles import create_default_roles
from embedded.apiserver.bootstrap import ManifestError, apply_manifests, create_system_objects, restore
from embedded.apiserver.controller_manager import Controllers
from embedded.apiserver.handlers.pod_streams import NodeHttpsConnections
from embedded.apiserver.http.audit import AuditLog
from embedded.apiserver.http.kubelet_client import KubeletLogs
from embedded.apiserver.http.router import Router
from embedded.apiserver.http.server import Server, tls_context
from embedded.apiserver.storage.journal import Journal
from embedded.apiserver.storage.state_directory import KEY, StateDirectory, StateError
from embedded.fault import ConfigurationFault
from embedded.ready_file import write_ready_file

_GENERATION_0, _GENERATION_1, _GENERATION_2 = 50_000, 20, 100


class StartError(ValueError):
    """The server cannot start as configured; the message is for the person who started it."""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m embedded.apiserver", description=__doc__)
    parser.add_argument("--listen", required=True, metavar="HOST:PORT", help="address; port 0 picks a free one")
    parser.add_argument("--tls-cert", required=True, type=Path, help="PEM certificate of this server")
    parser.add_argument("--tls-key", required=True, type=Path, help="PEM key of that certificate")
    users = 'lines of token,user,uid,"group1,group2"; the last two may be absent'
    parser.add_argument("--token-file", required=True, type=Path, help=users)
    parser.add_argument("--ready-file", required=True, type=Path, help="written when serving: address and port as JSON")
    parser.add_argument("--state-dir", type=Path, help="keeps the state across restarts; without it, memory only")
    parser.add_argument("--kubelet-token-file", type=Path, help="bearer token to read container logs and usage with")
    parser.add_argument("--audit-log", type=Path, help="file that gets a line of JSON for every request")
    parser.add_argument("--root-ca", type=Path, help="PEM authority of --tls-cert, told to every namespace")
    parser.add_argument("--kubelet-ca", type=Path, help="PEM authority of the nodes' log servers")
    parser.add_argument(
        "--bootstrap",
        type=Path,
        action="append",
        default=[],
        help="YAML manifest or directory applied at start; repeatable",
    )
    parser.add_argument(
        "--bootstrap-once",
        type=Path,
        action="append",
        default=[],
        help="the same for what people change: an object that is there from an earlier run stays as it is",
    )
    return parser.parse_args(arguments)


def listen_address(listen: str) -> tuple[str, int]:
    """Host and port of --listen; raises StartError where it is not of that form."""
    host, _, port = listen.rpartition(":")
    bare = host.strip("[]")
    if not bare or not port.isdecimal() or not 0 <= int(port) <= 65535 or (":" in bare and not host.startswith("[")):
        raise StartError(f"--listen {listen}: expected HOST:PORT, such as 127.0.0.1:0 or [::1]:6443")
    return ("127.0.0.1" if bare == "localhost" else bare), int(port)


def reachable_address(host: str) -> str:
    """Where this machine's own programs reach a server that listens on this host."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _warn_of_others(listen: str, host: str) -> None:
    """Nodes run the commands of pods, so whoever reaches this port with a token runs commands on this machine."""
    if not is_loopback(host):
        print(
            f"apiserver: --listen {listen}: reachable from other machines; "
            "whoever has a token of this cluster runs commands on this one",
            file=sys.stderr,
        )


def _secured(options: argparse.Namespace) -> tuple[ssl.SSLContext, frozenset[str]]:
    """The TLS settings, and the names that the certificate stands for."""
    try:
        return tls_context(options.tls_cert, options.tls_key), certificate_names(options.tls_cert)
    except (OSError, ValueError) as error:
        raise StartError(f"--tls-cert {options.tls_cert}, --tls-key {options.tls_key}: {error}") from None


def _node_servers(options: argparse.Namespace) -> tuple[KubeletLogs, NodeHttpsConnections] | tuple[None, None]:
    if options.kubelet_token_file is None:
        return None, None
    try:
        token = options.kubelet_token_file.read_text().strip()
        authority = ssl.create_default_context(cafile=options.kubelet_ca)
        return KubeletLogs(token, authority), NodeHttpsConnections(token, authority)
    except (OSError, ssl.SSLError) as error:
        raise StartError(
            f"--kubelet-token-file {options.kubelet_token_file}, --kubelet-ca {options.kubelet_ca}: {error}"
        ) from None


async def serve(options: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT."""
    host, port = listen_address(options.listen)
    authority = options.root_ca.read_text() if options.root_ca else ""
    _warn_of_others(options.listen, host)
    tokens, (nodes, connections), (tls, names) = (
        TokenFile.read(options.token_file),
        _node_servers(options),
        _secured(options),
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with _state(options.state_dir) as (directory, journal):
        credentials, audit = Credentials(tokens, _signing_key(options.state_dir)), _audit_log(options.audit_log)
        core = Router(time.time, nodes, log=journal, credentials=credentials, audit=audit, connections=connections)
        if directory is not None:
            restore(core.resources, directory)
        create_system_objects(core.resources)
        create_default_roles(core.resources)
        apply_manifests(core.resources, options.bootstrap)
        apply_manifests(core.resources, options.bootstrap_once, renew=False)
        server = Server(core, core.authenticator, tls, names)
        controllers = Controllers(core.resources, core.writes, authority)
        try:
            bound = await server.start(host, port)
        except OSError as error:
            raise StartError(f"--listen {options.listen}: {_bind_problem(error)}") from None
        try:
            controllers.start()
            settle_collector()
            write_ready_file(options.ready_file, {"address": reachable_address(host), "port": bound})
            await stop.wait()
        finally:
            await controllers.stop()
            await server.stop()
            await core.close()
            if audit is not None:
                audit.close()
            if nodes is not None:
                await nodes.close()


def _bind_problem(error: OSError) -> str:
    """asyncio's own words repeat the address as a tuple."""
    return f"{os.strerror(error.errno) if error.errno else error} (another port may be free; 0 is any free one)"


def _audit_log(path: Path | None) -> AuditLog | None:
    try:
        return None if path is None else AuditLog(path, time.time)
    except ConfigurationFault as fault:
        raise StartError(f"--audit-log {fault}") from None
    except OSError as error:
        raise StartError(f"--audit-log {path}: {error.strerror or error}") from None


def _signing_key(state: Path | None) -> SigningKey:
    """With a state directory tokens outlive this process, as do the objects they are bound to."""
    return SigningKey.new() if state is None else SigningKey.kept(state / KEY)


@contextlib.asynccontextmanager
async def _state(path: Path | None) -> AsyncIterator[tuple[StateDirectory | None, Journal | None]]:
    """The state directory, if there is one, open until everything else is stopped."""
    if path is None:
        yield None, None
        return
    directory = StateDirectory(path)
    journal = Journal(directory)
    try:
        yield directory, journal
    finally:
        await journal.close()


def settle_collector() -> None:
    """What exists now lives as long as the process: the collector need not look at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GENERATION_0, _GENERATION_1, _GENERATION_2)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve(parse_arguments()))
    except (StartError, StateError, SigningKeyError, TokenFileError, ManifestError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

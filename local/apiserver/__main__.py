"""`python -m local.apiserver`: the embedded API server as a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import gc
import ipaddress
import json
import logging
import os
import signal
import ssl
import sys
import time
from pathlib import Path

from local.apiserver.auth import TokenFileError, Tokens
from local.apiserver.bootstrap import ManifestError, apply_manifests, create_system_objects
from local.apiserver.controllers import Controllers
from local.apiserver.core import Core
from local.apiserver.kubelet_logs import KubeletLogs
from local.apiserver.server import Server, tls_context

_GENERATION_0, _GENERATION_1, _GENERATION_2 = 50_000, 20, 100


class StartError(ValueError):
    """The server cannot start as configured; the message is for the person who started it."""


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local.apiserver", description=__doc__)
    parser.add_argument(
        "--listen", required=True, metavar="HOST:PORT", help="loopback address; port 0 picks a free one"
    )
    parser.add_argument("--tls-cert", required=True, type=Path, help="PEM certificate of this server")
    parser.add_argument("--tls-key", required=True, type=Path, help="PEM key of that certificate")
    parser.add_argument("--token-file", required=True, type=Path, help="lines of token,username")
    parser.add_argument("--ready-file", required=True, type=Path, help="written when serving: address and port as JSON")
    parser.add_argument("--kubelet-token-file", type=Path, help="bearer token to read container logs with")
    parser.add_argument("--kubelet-ca", type=Path, help="PEM authority of the nodes' log servers")
    parser.add_argument(
        "--bootstrap",
        type=Path,
        action="append",
        default=[],
        help="YAML manifest or directory applied at start; repeatable",
    )
    return parser.parse_args(arguments)


def loopback_address(listen: str) -> tuple[str, int]:
    """Host and port of --listen; raises StartError unless the host is a loopback address.

    Nodes run the commands of pods, so whoever reaches this port runs commands on this machine.
    """
    host, _, port = listen.rpartition(":")
    host = host.strip("[]")
    try:
        loopback = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    except ValueError:
        loopback = False
    if not port.isdecimal() or not 0 <= int(port) <= 65535 or not host:
        raise StartError(f"--listen {listen}: expected HOST:PORT, such as 127.0.0.1:0")
    if not loopback:
        raise StartError(f"--listen {listen}: only a loopback address is allowed, such as 127.0.0.1:0")
    return ("127.0.0.1" if host == "localhost" else host), int(port)


def write_ready_file(path: Path, address: str, port: int) -> None:
    """Appears whole or not at all, so that whoever waits for it may read it at once."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(json.dumps({"address": address, "port": port}) + "\n")
    partial.replace(path)


def _tls_context(options: argparse.Namespace) -> ssl.SSLContext:
    try:
        return tls_context(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise StartError(f"--tls-cert {options.tls_cert}, --tls-key {options.tls_key}: {error}") from None


def _log_source(options: argparse.Namespace) -> KubeletLogs | None:
    if options.kubelet_token_file is None:
        return None
    try:
        token = options.kubelet_token_file.read_text().strip()
        return KubeletLogs(token, ssl.create_default_context(cafile=options.kubelet_ca))
    except (OSError, ssl.SSLError) as error:
        raise StartError(
            f"--kubelet-token-file {options.kubelet_token_file}, --kubelet-ca {options.kubelet_ca}: {error}"
        ) from None


async def serve(options: argparse.Namespace) -> None:
    """Run until SIGTERM or SIGINT."""
    host, port = loopback_address(options.listen)
    tokens, logs = Tokens.read(options.token_file), _log_source(options)
    core = Core(time.time, logs)
    create_system_objects(core.resources)
    apply_manifests(core.resources, options.bootstrap)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server, controllers = Server(core, tokens, _tls_context(options)), Controllers(core.resources)
    try:
        bound = await server.start(host, port)
    except OSError as error:
        raise StartError(f"--listen {options.listen}: {error}") from None
    try:
        controllers.start()
        # What exists now lives as long as the process: the collector need not look at it again.
        gc.collect()
        gc.freeze()
        gc.set_threshold(_GENERATION_0, _GENERATION_1, _GENERATION_2)
        write_ready_file(options.ready_file, host, bound)
        await stop.wait()
    finally:
        await controllers.stop()
        await server.stop()
        if logs is not None:
            await logs.close()


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        asyncio.run(serve(parse_arguments()))
    except (StartError, TokenFileError, ManifestError, OSError) as error:
        print(f"apiserver: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())

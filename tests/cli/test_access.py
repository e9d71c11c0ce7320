"""Asking a scheduler over TLS: what TLS needs, and what is said where it fails."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path
from typing import Any

import pytest

from cli.access import SchedulerAccess, asks_scheduler, scheduler_at
from kube.grpc_server import tls_server
from kube.tls import ServerCertificate, TlsFiles
from local.certificates import LocalAuthority
from model.fault import ConfigurationFault, PeerFault
from scheduler.edge.call_authorization import CallAuthorization
from scheduler.link.callers import TokenTable
from wire.v1 import scheduler_pb2, scheduler_pb2_grpc


class Gangs(scheduler_pb2_grpc.SchedulerDiagnosticsServicer):
    """Knows one gang."""

    name = "sublet.v1.SchedulerDiagnostics"

    def register(self, server: Any) -> None:
        scheduler_pb2_grpc.add_SchedulerDiagnosticsServicer_to_server(self, server)

    async def ListGangs(self, request: Any, context: Any) -> Any:
        return scheduler_pb2.ListGangsResponse(gangs=[scheduler_pb2.Gang(namespace="d", name="train")])


def asked(
    folder: Path, names: tuple[str, ...], token: str, ca: bytes | None = None, server_name: str = ""
) -> list[str]:
    """Names of the gangs that a server with a certificate for `names` answers."""
    authority = LocalAuthority("test")
    certificate, key = authority.issue("scheduler", names)
    for name, content in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", ca or authority.certificate_pem)):
        (folder / name).write_bytes(content)
    (folder / "token").write_text(f"{token}\n")

    async def whole() -> list[str]:
        served = ServerCertificate(TlsFiles(folder / "tls.crt", folder / "tls.key"))
        listener = await tls_server(
            "127.0.0.1:0", served, CallAuthorization(TokenTable([("good", "ann")])), (Gangs(),), 8
        )
        await listener.start()
        try:
            asking = scheduler_at(listener.address, folder / "ca.crt", folder / "token", server_name)
            return [gang.name for gang in await asyncio.to_thread(asking.gangs)]
        finally:
            await listener.stop(0)

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("names", "server_name"),
    [(("127.0.0.1",), ""), (("sublet-scheduler.sublet-system.svc",), "sublet-scheduler.sublet-system.svc")],
    ids=["by its address", "by a port-forward"],
)
def test_a_token_and_an_authority_are_enough(tmp_path: Path, names: tuple[str, ...], server_name: str) -> None:
    """Under the name that the certificate carries."""
    assert asked(tmp_path, names, "good", server_name=server_name) == ["train"]


def test_an_unknown_token_is_told_with_the_command_that_makes_one(tmp_path: Path) -> None:
    """And not repeated."""
    with pytest.raises(PeerFault, match=r"does not know this token \(.*kubectl create token") as told:
        asked(tmp_path, ("127.0.0.1",), "guessed")
    assert "guessed" not in str(told.value)


@pytest.mark.parametrize("other", [True, False], ids=["another authority", "another name"])
def test_a_certificate_that_is_not_trusted(tmp_path: Path, other: bool) -> None:
    """Says so, and which flags mend it."""
    ca = LocalAuthority("other").certificate_pem if other else None
    names = ("127.0.0.1",) if other else ("elsewhere.example",)
    with pytest.raises(PeerFault, match=r"certificate is not trusted.*--ca .*--tls-server-name"):
        asked(tmp_path, names, "good", ca)


@pytest.mark.parametrize("given", ["ca", "token", "name"])
def test_half_of_it_is_refused(tmp_path: Path, given: str) -> None:
    """Before anybody is called."""
    file = tmp_path / "file"
    ca, token, name = file if given == "ca" else None, file if given == "token" else None, "n" * (given == "name")
    with pytest.raises(ConfigurationFault, match="TLS needs both"):
        scheduler_at("127.0.0.1:1", ca, token, name)


@pytest.mark.parametrize("content", ["", "two words", "tök"])
def test_what_is_no_token_is_told_by_its_file(tmp_path: Path, content: str) -> None:
    """Its content is not."""
    with pytest.raises(ConfigurationFault, match="token: is not a token"):
        asked(tmp_path, ("127.0.0.1",), content)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """Named."""
    with pytest.raises(ConfigurationFault, match="absent: cannot be read"):
        scheduler_at("127.0.0.1:1", tmp_path / "absent", tmp_path / "absent", "")


def test_one_set_of_options() -> None:
    """A command that asks the scheduler has the options that say where and as whom, beside its own, and gets them as one."""

    @asks_scheduler
    def command(name: str, *, access: SchedulerAccess, count: int = 1) -> tuple[str, int, SchedulerAccess]:
        """What it does."""
        return name, count, access

    assert list(inspect.signature(command).parameters) == ["name", "count", *SchedulerAccess._fields]
    assert command.__doc__ == "What it does."
    given = SchedulerAccess("h:1", None, None, "s", Path("d"))
    assert command(name="n", count=2, **given._asdict()) == ("n", 2, given)


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigurationFault, match="--scheduler nowhere: is not HOST:PORT"):
        SchedulerAccess("nowhere").client()

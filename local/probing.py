"""One question to a program on this machine: does it answer HTTP at all, and does it say that it is alive."""

from __future__ import annotations

import asyncio
import ssl

import msgspec

_FAILED = 500  # from which on an answer says that the program is not well; any other one came from a live loop
_MOST_BYTES = 4096


class ProbeAddress(msgspec.Struct, frozen=True):
    """Where a program is asked: on its unix socket, where it has one."""

    host: str = ""
    port: int = 0
    tls: bool = False
    socket: str = ""


async def unanswered(door: ProbeAddress, bound_seconds: float, path: str = "/healthz") -> str:
    """Why a program does not count as alive, in words; empty where it answers well within the bound.

    Another `path` asks something else, such as /readyz.
    """
    try:
        async with asyncio.timeout(bound_seconds):
            status, said = await _asked(door, path)
    except TimeoutError:
        return f"no answer within {bound_seconds:.0f} s"
    except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return "" if status < _FAILED else f"it says {status}: {said}"


async def _asked(door: ProbeAddress, path: str) -> tuple[int, str]:
    reader, writer = await _opened(door)
    try:
        writer.write(f"GET {path}".encode() + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        said = await reader.read(_MOST_BYTES)
        return int(head[0].split()[1]), " ".join(said.decode(errors="replace").split())
    except IndexError:
        raise ValueError("its answer is not HTTP") from None
    finally:
        writer.close()


async def _opened(door: ProbeAddress) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if door.socket:
        return await asyncio.open_unix_connection(door.socket)
    return await asyncio.open_connection(door.host, door.port, ssl=_unverified() if door.tls else None)


def _unverified() -> ssl.SSLContext:
    """Nothing secret is said, and a certificate that has run out is no program that hangs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context

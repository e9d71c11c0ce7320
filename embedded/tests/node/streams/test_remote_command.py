"""One command and its client, both of the test's making."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable

import pytest

from embedded.node.ports import Ends
from embedded.node.streams.connections import Channel
from embedded.node.streams.remote_command import Conversation

EVERYTHING = Ends(stdin=True, stdout=True, stderr=True)


def run_to_its_end(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*given: object, **named: object) -> None:
        async def bounded() -> None:
            await asyncio.wait_for(test(*given, **named), 60)

        asyncio.run(bounded())

    return run


class Client:
    """Says what it is given, None for its leaving; `heard` is what it was told, by channel."""

    def __init__(self) -> None:
        self.says: asyncio.Queue[tuple[Channel, bytes] | None] = asyncio.Queue()
        self.heard: dict[Channel, bytes] = {}
        self.closed = False

    async def receive(self) -> tuple[Channel, bytes] | None:
        return await self.says.get()

    async def send(self, channel: Channel, data: bytes) -> None:
        self.heard[channel] = self.heard.get(channel, b"") + data

    async def close(self, *used: Channel) -> None:
        self.closed = True
        self.says.put_nowait(None)


class Stdin:
    def __init__(self, *, reads: bool) -> None:
        self._reads = reads
        self.read = b""
        self.ended = False

    async def write(self, data: bytes) -> None:
        if not self._reads:
            await asyncio.Event().wait()
        self.read += data

    def close(self) -> None:
        self.ended = True


class Silent:
    async def read(self) -> bytes:
        return b""


class Command:
    def __init__(self, *, reads: bool = True) -> None:
        self.stdin = Stdin(reads=reads)
        self.stdout, self.stderr = Silent(), Silent()
        self.ending: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.sizes: list[tuple[int, int]] = []
        self.left = False

    async def wait(self) -> int:
        return await asyncio.shield(self.ending)

    def resize(self, width: int, height: int) -> None:
        self.sizes.append((width, height))

    def leave(self) -> None:
        self.left = True


@run_to_its_end
async def test_input_reaches_the_command_in_order_and_so_does_its_end() -> None:
    client, command = Client(), Command()
    held = asyncio.create_task(Conversation(client, command, EVERYTHING).hold())
    for data in (b"one ", b"two " * 10_000, b""):
        client.says.put_nowait((Channel.STDIN, data))
    while not command.stdin.ended:
        await asyncio.sleep(0)
    assert command.stdin.read == b"one " + b"two " * 10_000
    command.ending.set_result(3)
    await held
    assert json.loads(client.heard[Channel.ERROR])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    assert client.closed and command.left


@run_to_its_end
async def test_who_leaves_at_once_has_said_what_was_said() -> None:
    client, command = Client(), Command()
    client.says.put_nowait((Channel.STDIN, b"last words"))
    client.says.put_nowait(None)
    await Conversation(client, command, EVERYTHING).hold()
    assert command.stdin.read == b"last words" and command.left


@run_to_its_end
async def test_a_client_that_leaves_is_noticed_while_the_command_does_not_read() -> None:
    """Else the terminal of whoever typed into a stuck program and gave up would be held for hours."""
    client, command = Client(), Command(reads=False)
    for key in b"help me":
        client.says.put_nowait((Channel.STDIN, bytes([key])))
    client.says.put_nowait(None)
    await asyncio.wait_for(Conversation(client, command, EVERYTHING).hold(), 30)
    assert command.left


@run_to_its_end
async def test_a_command_that_does_not_read_makes_a_client_that_writes_much_wait() -> None:
    client, command = Client(), Command(reads=False)
    for _ in range(100):
        client.says.put_nowait((Channel.STDIN, bytes(1 << 20)))
    held = asyncio.create_task(Conversation(client, command, EVERYTHING).hold())
    for _ in range(1000):
        await asyncio.sleep(0)
    assert client.says.qsize() > 90
    command.ending.set_result(0)
    await held
    assert json.loads(client.heard[Channel.ERROR])["status"] == "Success"


@run_to_its_end
async def test_silence_ends_the_connection() -> None:
    client, command = Client(), Command()
    await Conversation(client, command, EVERYTHING, idle_seconds=0.01).hold()
    assert command.left and Channel.ERROR not in client.heard


SIZES = {
    "one": ([b'{"Width":100,"Height":30}'], [(100, 30)]),
    "two, a line each": ([b'{"Width":100,"Height":30}\n{"Width":1,"Height":2}\n'], [(100, 30), (1, 2)]),
    "in two pieces": ([b'{"Width":10', b'0,"Height":30}'], [(100, 30)]),
    "no size": ([b"[" * 100_000 + b"\n", b'{"Width":-1,"Height":1e999}', b'{"Width":100}'], []),
    "a size after what is none": ([b'{"Width":"wide","Height":3}', b'{"Width":7,"Height":3}'], [(7, 3)]),
    "beyond what a terminal can be": ([b'{"Width":65536,"Height":3}'], []),
}


@pytest.mark.parametrize(("pieces", "sizes"), SIZES.values(), ids=SIZES)
@run_to_its_end
async def test_sizes_of_the_terminal(pieces: list[bytes], sizes: list[tuple[int, int]]) -> None:
    client, command = Client(), Command()
    for piece in pieces:
        client.says.put_nowait((Channel.RESIZE, piece))
    client.says.put_nowait(None)
    await Conversation(client, command, Ends(stdin=True, stdout=True, tty=True)).hold()
    assert command.sizes == sizes

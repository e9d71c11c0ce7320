"""The load is a share of the machine, whatever a request costs there; an answer is a complete one."""

from __future__ import annotations

import asyncio

import pytest

from local.demo.load import Segment
from local.demo.service import answers, cost_of_request, free_port, load_for


@pytest.mark.parametrize(
    ("case", "cost", "cores", "base", "surge"),
    [
        ("two cores", 0.004, 2, 100.0, 300.0),
        ("a slower machine", 0.008, 2, 50.0, 150.0),
        ("four cores", 0.004, 4, 200.0, 600.0),
        ("no more than four are loaded", 0.004, 64, 200.0, 600.0),
    ],
)
def test_the_load_is_a_fifth_and_then_three_fifths(
    case: str, cost: float, cores: int, base: float, surge: float
) -> None:
    """Of the cores, for half of the phase each."""
    load = load_for(cost, 16.0, cores, 80)
    assert load.base == Segment(8.0, pytest.approx(base))
    assert load.surge == Segment(8.0, pytest.approx(surge))
    assert load.seconds == 16.0


def test_a_request_costs_what_its_rounds_cost() -> None:
    """More rounds cost more; the overhead is counted."""
    assert 0.0008 < cost_of_request(100, tries=3) < cost_of_request(20000, tries=3)


def test_a_service_that_is_not_there_does_not_answer() -> None:
    """Neither a closed port nor one that accepts and says nothing."""

    async def story() -> list[bool | None]:
        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readline()
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            writer.close()

        seen = [await answers(free_port())]
        for behaviour in (hang_up, speak):
            server = await asyncio.start_server(behaviour, "127.0.0.1", 0)
            async with server:
                seen.append(await answers(server.sockets[0].getsockname()[1]))
        return seen

    assert asyncio.run(story()) == [None, None, True]

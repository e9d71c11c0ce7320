"""The web service of the demonstration, seen from outside: what a request costs, how much load fits, does it answer."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

from local.demo.load import Segment
from local.demo.phase import PhaseLoad

LOOPBACK = "127.0.0.1"
ROUNDS = 16000
# What a request costs the service besides its work: HTTP, threads, the kernel's share.
_OVERHEAD_SECONDS = 0.0008
_BASE_SHARE, _SURGE_SHARE = 0.20, 0.60
# One process in Python serves no more than a few cores' worth of requests.
_MOST_CORES = 4


def cost_of_request(rounds: int = ROUNDS, tries: int = 12) -> float:
    """CPU seconds of a request on this machine with its CPUs busy: the median of several tries on each of them."""
    workers = min(os.cpu_count() or 1, _MOST_CORES)
    with ThreadPoolExecutor(workers) as threads:
        return statistics.median(threads.map(_once, [rounds] * tries * workers)) + _OVERHEAD_SECONDS


def load_for(cost_seconds: float, phase_seconds: float, cores: int, port: int) -> PhaseLoad:
    """Base load for the first half of a phase, then the surge: 20 % and 60 % of the cores."""
    half, cores = phase_seconds / 2, min(cores, _MOST_CORES)
    base, surge = (Segment(half, share * cores / cost_seconds) for share in (_BASE_SHARE, _SURGE_SHARE))
    return PhaseLoad(port, base, surge)


def free_port() -> int:
    """A loopback port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


async def answers(port: int) -> bool | None:
    """True once the service completes a request."""
    try:
        reader, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return None
    try:
        writer.write(b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n")
        return True if await asyncio.wait_for(reader.readline(), 2.0) else None
    except (OSError, TimeoutError):
        return None
    finally:
        writer.close()


def _once(rounds: int) -> float:
    before = time.thread_time()
    hashlib.pbkdf2_hmac("sha256", b"a request", b"salt", rounds)
    return time.thread_time() - before

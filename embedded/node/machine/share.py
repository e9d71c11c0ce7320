"""How one machine is divided into nodes, and what each of them says it has: pure arithmetic.

A node's true share, or its claim where that is less, bounds what runs on it (`kernels.confine`). What it claims is what
its Node object says, which may be more, so that a walk-through for larger machines works on a small one; `view` then
shows the difference as CPUs and memory in use, and the Node as what its agent may never lend.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from embedded.fault import ConfigurationFault
from embedded.quantity import parse_millis, parse_units


class Share(msgspec.Struct, frozen=True):
    """Node `number` of `of` on this machine; `whole` where it is and says all of it. `cpus` are those it may use.

    `cpu_millis` and `memory_bytes` are what is truly there, `claimed_…` what the Node says.
    """

    number: int
    of: int
    cpus: tuple[int, ...]
    whole: bool
    cpu_millis: int
    memory_bytes: int
    claimed_cpu_millis: int
    claimed_memory_bytes: int

    @property
    def bound_cpu_millis(self) -> int:
        """What its pods may use at most."""
        return min(self.cpu_millis, self.claimed_cpu_millis)

    @property
    def bound_memory_bytes(self) -> int:
        return min(self.memory_bytes, self.claimed_memory_bytes)

    @property
    def overstated(self) -> bool:
        return self.claimed_cpu_millis > self.cpu_millis or self.claimed_memory_bytes > self.memory_bytes


class Claim(msgspec.Struct, frozen=True):
    """What a person wants a node to say it has, as Kubernetes quantities; empty for what is truly there."""

    cpu: str = ""
    memory: str = ""

    def __post_init__(self) -> None:
        _amount("--node-cpu", self.cpu, "2 or 500m", parse_millis)
        _amount("--node-memory", self.memory, "16Gi", parse_units)


def share_of(number: int, of: int, cpus: Sequence[int], memory_bytes: int, claim: Claim) -> Share:
    """Whole CPUs for each while there are enough, else all CPUs for all of them and a part of their time."""
    claimed_cpu = parse_millis(claim.cpu or 0)
    own, cpu_millis = tuple(cpus), 1000 * len(cpus) // of
    if of <= len(cpus):
        own = own[_edge(number - 1, of, len(cpus)) : _edge(number, of, len(cpus))]
        own = own[: -(-claimed_cpu // 1000)] if claimed_cpu else own
        cpu_millis = 1000 * len(own)
    claimed_memory = parse_units(claim.memory or 0) or memory_bytes // of
    return Share(
        number=number,
        of=of,
        cpus=own,
        whole=of == 1 and claim == Claim(),
        cpu_millis=cpu_millis,
        memory_bytes=memory_bytes // of,
        claimed_cpu_millis=claimed_cpu or cpu_millis,
        claimed_memory_bytes=claimed_memory,
    )


def parse_share(text: str) -> tuple[int, int]:
    """`2/3` is the second of three nodes. Raises ConfigurationFault."""
    number, _, of = text.partition("/")
    if number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of):
        return int(number), int(of)
    raise ConfigurationFault(f"--share {text}", "is no share of a machine", "write NUMBER/NODES such as 1/2")


def siblings(id_: str, share: tuple[int, int]) -> tuple[str, ...]:
    """The ids of all nodes of this machine, from one's own: `a-2` of 2/3 gives `a-1`, `a-2`, `a-3`."""
    number, of = share
    if of == 1:
        return (id_,)
    stem = id_.removesuffix(f"-{number}")
    return tuple(f"{stem}-{each}" for each in range(1, of + 1))


def _edge(number: int, of: int, cpus: int) -> int:
    """Where the part of a node ends; the first nodes get what does not divide evenly."""
    return number * (cpus // of) + min(number, cpus % of)


def _amount(flag: str, text: str, example: str, parse: Callable[[str], int]) -> None:
    if not text:
        return
    try:
        right = parse(text) > 0
    except (ValueError, ConfigurationFault):
        right = False
    if not right:
        raise ConfigurationFault(f"{flag} {text}", "is no amount", f"write it as in a manifest, such as {example}")

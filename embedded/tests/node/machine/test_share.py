"""One machine divided: nothing is given twice, nothing is lost, and a claim is not a possession."""

from __future__ import annotations

import pytest

from embedded.fault import ConfigurationFault
from embedded.node.machine.share import Claim, Share, parse_share, share_of, siblings

GIB = 1 << 30


def shares(of: int, cpus: int, claim: Claim = Claim()) -> list[Share]:  # noqa: B008
    return [share_of(number, of, range(cpus), 24 * GIB, claim) for number in range(1, of + 1)]


@pytest.mark.parametrize(("of", "cpus"), [(1, 2), (2, 2), (2, 5), (3, 4), (4, 64)])
def test_whole_cpus(of: int, cpus: int) -> None:
    """Each CPU belongs to one node, and no node has two more than another."""
    found = shares(of, cpus)
    assert [cpu for share in found for cpu in share.cpus] == list(range(cpus))
    sizes = [len(share.cpus) for share in found]
    assert max(sizes) - min(sizes) <= 1
    assert all(share.cpu_millis == 1000 * len(share.cpus) == share.claimed_cpu_millis for share in found)
    assert all(share.memory_bytes == 24 * GIB // of == share.claimed_memory_bytes for share in found)


def test_more_nodes_than_cpus() -> None:
    """All may run everywhere, and each says its part."""
    assert {(share.cpus, share.cpu_millis) for share in shares(4, 2)} == {((0, 1), 500)}


def test_a_claim_beyond_the_machine() -> None:
    """Is said, and changes nothing about what is there."""
    first, second = shares(2, 2, Claim("4", "16Gi"))
    assert (first.claimed_cpu_millis, first.claimed_memory_bytes) == (4000, 16 * GIB)
    assert (first.cpus, first.cpu_millis, first.memory_bytes) == ((0,), 1000, 12 * GIB)
    assert (first.bound_cpu_millis, first.bound_memory_bytes) == (1000, 12 * GIB)
    assert second.cpus == (1,) and not first.whole and first.overstated


def test_a_claim_below_the_machine() -> None:
    """The node then has no more CPUs than it says."""
    (share,) = shares(1, 4, Claim("1500m"))
    assert (share.cpus, share.cpu_millis, share.claimed_cpu_millis) == ((0, 1), 2000, 1500)
    assert share.bound_cpu_millis == 1500 and not share.overstated


def test_whole() -> None:
    """Only a node alone on its machine that claims nothing."""
    assert shares(1, 2)[0].whole
    assert not shares(1, 2, Claim("2"))[0].whole


@pytest.mark.parametrize("claim", [("x", ""), ("0", ""), ("-1", ""), ("", "16 GB"), ("", "0")])
def test_no_amount(claim: tuple[str, str]) -> None:
    """Refused with the flag's name."""
    with pytest.raises(ConfigurationFault, match="--node-cpu" if claim[0] else "--node-memory"):
        Claim(*claim)


@pytest.mark.parametrize("text", ["", "1", "0/1", "3/2", "a/b", "1/0"])
def test_no_share(text: str) -> None:
    """Refused."""
    with pytest.raises(ConfigurationFault, match="--share"):
        parse_share(text)


def test_siblings() -> None:
    """From one's own id."""
    assert siblings("a-2", (2, 3)) == ("a-1", "a-2", "a-3")
    assert siblings("a", (1, 1)) == ("a",)

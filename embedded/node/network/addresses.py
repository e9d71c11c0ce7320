"""Addresses of pods: each node of this machine has a range, the first address of which is the node's own.

There are no network namespaces: what a pod binds to 0.0.0.0 takes the port on all of them. Of an embedded API server
they are loopback addresses. Any other refuses those as endpoints, so there they are from `ROUTED`, which `sublet up`
makes addresses of this machine.
"""

from __future__ import annotations

import ipaddress

from embedded.node.objects.pod import PodObject

_FIRST, _SERVICES = 64, 96
ROUTED = ipaddress.IPv4Network("198.18.0.0/15")
"""Kept for benchmarks of network devices (RFC 2544): no host on the Internet and seldom one elsewhere has them."""
_ROUTED_PREFIX = 20


def pod_range(number: int, *, routed: bool = False) -> ipaddress.IPv4Network:
    """Of the node with this number on its machine, from 1 on; 127.96.0.0/16 is left to Services.

    Beyond the last range nodes share: there are 190 of them, and 32 that are `routed`.
    """
    if routed:
        return list(ROUTED.subnets(new_prefix=_ROUTED_PREFIX))[(number - 1) % 32]
    second = _FIRST + (number - 1) % 190 + 1
    return ipaddress.IPv4Network(f"127.{second if second < _SERVICES else second + 1}.0.0/16")


def node_address(number: int, *, routed: bool = False) -> str:
    """Of the node itself and of its pods with hostNetwork: nodes of one machine may listen on the same port."""
    return str(pod_range(number, routed=routed)[1])


class Addresses:
    """Which address is whose, by pod uid; `host` is the node's."""

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        self.host = str(network[1])
        self._held: dict[str, str] = {}
        self._last = 1

    def take(self, pod: PodObject) -> str:
        """The pod's own one, the same until `release`; what an earlier run of the node gave it is kept."""
        if pod.spec.host_network:
            return self.host
        if pod.uid not in self._held:
            before = pod.status.pod_ip
            self._held[pod.uid] = before if self._ours(before) and self._free(before) else self._next()
        return self._held[pod.uid]

    def release(self, pod: PodObject) -> None:
        self._held.pop(pod.uid, None)

    def _next(self) -> str:
        """The one after that given last: an address rests before it is somebody else's."""
        for _ in range(self._network.num_addresses):
            self._last = self._last % (self._network.num_addresses - 2) + 1
            address = str(self._network[self._last])
            if self._last > 1 and self._free(address):
                return address
        return self.host

    def _free(self, address: str) -> bool:
        return address not in self._held.values()

    def _ours(self, address: str) -> bool:
        try:
            return ipaddress.IPv4Address(address) in self._network
        except ValueError:
            return False

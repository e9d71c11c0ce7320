"""Interfaces of the node by pod, by netlink (pyroute2). Loaded when the first pod is looked up."""

from __future__ import annotations

from collections.abc import Mapping

from agent.core.observe import network
from agent.core.observe.network import HostLink
from kube.packages import defer_init

# Its `__init__` loads every protocol and a database of them; routes and links are all that is asked for here.
defer_init("pyroute2")

from pyroute2.iproute.linux import IPRoute  # noqa: E402
from pyroute2.netlink.exceptions import NetlinkError  # noqa: E402


def links_of_pods(pods: Mapping[str, int]) -> dict[str, tuple[str, ...]]:
    """uid → host-side interfaces, of uid → pid. Raises OSError where netlink is not granted."""
    try:
        with IPRoute() as route:
            # The dump comes first: it is what makes the kernel number the namespaces.
            links = [HostLink(link.get("ifname", ""), link.get("link_netnsid")) for link in route.get_links()]
            return network.links_of_pods({uid: _namespace(route, pid) for uid, pid in pods.items()}, links)
    except NetlinkError as error:
        raise OSError(error.code, str(error)) from error


def _namespace(route: IPRoute, pid: int) -> int | None:
    """None for a process that is gone."""
    try:
        answer = route.get_netnsid(pid=pid)
    except NetlinkError:
        return None
    return answer["nsid"] if answer else None

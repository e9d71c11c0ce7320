"""Host ports."""

from __future__ import annotations

import pytest
from filter_builders import asked, cluster, pod_index, told
from scheduler_builders import node, pod

from model.pod.affinity import HostPort
from scheduler.core.filters.ports import PORTS

CASES: dict[str, tuple[HostPort, HostPort, bool]] = {
    "the same": (HostPort(80), HostPort(80), True),
    "another port": (HostPort(80), HostPort(81), False),
    "another protocol": (HostPort(80), HostPort(80, "UDP"), False),
    "another address": (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.2"), False),
    "the same address": (HostPort(80, ip="10.0.0.1"), HostPort(80, ip="10.0.0.1"), True),
    "every address there": (HostPort(80), HostPort(80, ip="10.0.0.1"), True),
    "every address wanted": (HostPort(80, ip="10.0.0.1"), HostPort(80), True),
}


@pytest.mark.parametrize(("there", "wanted", "clash"), CASES.values(), ids=CASES)
def test_a_taken_port_refuses_its_node(there: HostPort, wanted: HostPort, *, clash: bool) -> None:
    """The other node is free, for one such pod."""
    seen = cluster(node("n1"), node("n2"))
    found = asked(seen, pod_index(seen, [(pod("r", host_ports=(there,)), "n1")]), pod(host_ports=(wanted,)))
    assert told(found) == [PORTS if clash else "", ""]
    assert found.resolvable == ((True,) if clash else ())
    assert found.most is not None
    assert (found.most.tolist(), found.apart) == ([1, 1], False)


def test_a_pod_without_ports_meets_no_obstacle() -> None:
    """Whoever has one."""
    seen = cluster(node("n1"))
    found = asked(seen, pod_index(seen, [(pod("r", host_ports=(HostPort(80),)), "n1")]), pod())
    assert (told(found), found.most) == ([""], None)

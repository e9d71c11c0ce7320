"""Host ports: two pods of one node never have the same.

Source: kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go and framework/types.go (HostPortInfo).
"""

from __future__ import annotations

import numpy as np

from scheduler.core.filters.pod_filter import Answer, Asking, Refusal
from scheduler.core.picture.pod_queries import PortUsers

PORTS = "node(s) didn't have free ports for the requested pod ports"


def ports(asking: Asking) -> Answer:
    """Rows where a resident has a clashing port; each other row takes one such pod."""
    taken = asking.crowd.count(PortUsers(asking.pod_class.company.ports)) > 0
    return Answer((Refusal(taken, PORTS, resolvable=True),), most=np.ones(asking.size, np.int64))

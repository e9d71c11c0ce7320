"""Host ports: two pods of one node never have the same.

Source: kubernetes pkg/scheduler/framework/plugins/nodeports/node_ports.go and framework/types.go (HostPortInfo).
"""

from __future__ import annotations

import numpy as np

from scheduler.core.filters.pod_filter import FilteredRows, FilterRequest, FilterResult
from scheduler.core.snapshot.pod_queries import PortUsers

PORTS = "node(s) didn't have free ports for the requested pod ports"


def ports(request: FilterRequest) -> FilterResult:
    """Rows where a resident has a clashing port; each other row takes one such pod."""
    taken = request.pod_index.count(PortUsers(request.pod_class.interpod.ports)) > 0
    return FilterResult((FilteredRows(taken, PORTS, resolvable=True),), most=np.ones(request.size, np.int64))

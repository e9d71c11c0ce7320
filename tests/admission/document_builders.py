"""Documents as the API server hands them over, and what is said of them."""

from __future__ import annotations

from typing import Any

import msgspec
from admission_builders import Cluster

from admission.check_result import CheckResult
from admission.documents import check


def config(name: str = "slo-controller-config", **data: Any) -> bytes:
    """Keys with underscores for dashes; values as JSON."""
    texts = {
        key.replace("_", "-"): v if isinstance(v, str) else msgspec.json.encode(v).decode() for key, v in data.items()
    }
    return msgspec.json.encode({"metadata": {"name": name, "namespace": "koordinator-system"}, "data": texts})


def checked(
    raw: bytes, kind: str = "ConfigMap", group: str = "", *, old: bytes | None = None, **nodes: Any
) -> CheckResult:
    found = check(group, kind, raw, old, Cluster(nodes=nodes))
    assert found is not None
    return found


def entry(name: str = "a", labels: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "nodeSelector": {"matchLabels": labels or {"pool": name}}, **fields}


def cluster(key: str, **fields: Any) -> dict[str, Any]:
    return {key: {"clusterStrategy": fields}}

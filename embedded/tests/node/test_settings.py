"""A wrong flag is refused by name before anything is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from embedded.fault import ConfigurationFault
from embedded.node.settings import NodeSettings


def settings(**changes: Any) -> NodeSettings:
    here = Path("/nowhere")
    valid: dict[str, Any] = {
        "kubeconfig": here, "node_name": "n1", "id": "t", "run_dir": here,
        "tls_cert": here, "tls_key": here, "kubelet_token_file": here,
    }  # fmt: skip
    return NodeSettings(**{**valid, **changes})


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"id": "../x"}, "--id"),
        ({"id": ""}, "--id"),
        ({"id": "a" * 41}, "--id"),
        ({"node_name": "N 1"}, "--node-name"),
        ({"backoff_base_seconds": 0}, "--backoff-base"),
        ({"images": Path("/nowhere")}, "--images"),
    ],
)
def test_refused(change: dict[str, Any], flag: str) -> None:
    """The fault names the flag."""
    with pytest.raises(ConfigurationFault, match=flag):
        settings(**change)


def test_accepted() -> None:
    """The defaults are the kubelet's."""
    assert settings().backoff_base_seconds == 10

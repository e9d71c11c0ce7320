"""Pod directories of the cgroupfs driver."""

from __future__ import annotations

import pytest

from agent.core.layout import KubepodsLayout
from model.qos import KubernetesQoS


@pytest.mark.parametrize(
    ("qos", "path"),
    [
        (KubernetesQoS.GUARANTEED, "/x/kubepods/podu-1"),
        (KubernetesQoS.BURSTABLE, "/x/kubepods/burstable/podu-1"),
        (KubernetesQoS.BEST_EFFORT, "/x/kubepods/besteffort/podu-1"),
    ],
)
def test_pod_directory(qos: KubernetesQoS, path: str) -> None:
    """Guaranteed pods sit directly below the root."""
    assert KubepodsLayout("/x/kubepods").pod(qos, "u-1") == path

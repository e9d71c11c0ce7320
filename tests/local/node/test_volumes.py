"""Only mounts that are already in place are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from local.node.volumes import refusal


@pytest.mark.parametrize(
    ("volume", "mount", "accepted"),
    [
        pytest.param({"hostPath": {"path": "/data"}}, {"mountPath": "/data"}, True, id="host path at its own place"),
        pytest.param(
            {"hostPath": {"path": "/data/"}}, {"mountPath": "/data/a", "subPath": "a"}, True, id="its sub-path too"
        ),
        pytest.param({"hostPath": {"path": "/data"}}, {"mountPath": "/other"}, False, id="host path elsewhere"),
        pytest.param({"emptyDir": {}}, {"mountPath": "/dev/shm"}, True, id="shared memory"),
        pytest.param({"emptyDir": {}}, {"mountPath": "/cache"}, False, id="other empty directory"),
        pytest.param({"configMap": {"name": "c"}}, {"mountPath": "/etc/c"}, False, id="config map"),
    ],
)
def test_refusal(pod: Any, volume: dict[str, Any], mount: dict[str, Any], accepted: bool) -> None:
    """The message names volume and place."""
    built = pod(volumes=[{"name": "v", **volume}], containers=[{"volumeMounts": [{"name": "v", **mount}]}])
    message = refusal(built, built.spec.containers[0])
    assert (message is None) is accepted
    assert accepted or (message and "volume v" in message and mount["mountPath"] in message)


def test_token_volume(pod: Any) -> None:
    """The token volume that API servers add by themselves keeps no pod from running."""
    built = pod(containers=[{"volumeMounts": [{"name": "kube-api-access-x", "mountPath": "/var/run/secrets"}]}])
    assert refusal(built, built.spec.containers[0]) is None

"""The agent's DaemonSet as `deploy/` makes it, as far as an uninstallation looks at it."""

from __future__ import annotations

from typing import Any


def daemon_set(**spec: Any) -> dict[str, Any]:
    agent = {
        "name": "agent",
        "image": "sublet-agent:1",
        "command": ["sublet", "agent"],
        "args": ["--state-file=/s"],
        "livenessProbe": {"httpGet": {"port": 1}},
        "volumeMounts": [{"name": "state", "mountPath": "/s"}],
    }
    pod = {"initContainers": [{"name": "preflight"}], "containers": [agent, {"name": "guard"}], **spec}
    return {"metadata": {"resourceVersion": "7", "generation": 3}, "spec": {"template": {"spec": pod}}}

"""Kubeconfig documents for the embedded cluster."""

from __future__ import annotations

import base64

import yaml


def kubeconfig(address: str, authority_pem: bytes, token: str) -> bytes:
    """A kubeconfig (YAML) whose one cluster, user and context are all called `sublet`."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sublet",
        "clusters": [
            {
                "name": "sublet",
                "cluster": {
                    "server": f"https://{address}",
                    "certificate-authority-data": base64.b64encode(authority_pem).decode(),
                },
            }
        ],
        "users": [{"name": "sublet", "user": {"token": token}}],
        "contexts": [{"name": "sublet", "context": {"cluster": "sublet", "user": "sublet", "namespace": "default"}}],
    }
    return yaml.safe_dump(document, sort_keys=False).encode()

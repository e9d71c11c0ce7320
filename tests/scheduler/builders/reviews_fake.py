"""An API server as far as callers need it: token reviews with audiences, access reviews, pods."""

from __future__ import annotations

from typing import Any

import msgspec

from kube.reviews import NODE_KEY, POD_KEY, POD_UID_KEY
from model.fault import KubernetesFault

AUDIENCE = "sublet-scheduler"
AGENT = "system:serviceaccount:sublet-system:sublet-agent"


class FakeCluster:
    """kube.client.KubeClient as `Reviews` and `ReviewedCallers` use it.

    `tokens` are token → (user, audience), `rights` (user, path), `pods` name → (uid, node), of which those
    in `unreadable` are not answered.
    """

    def __init__(self) -> None:
        self.tokens: dict[str, tuple[dict[str, Any], str]] = {}
        self.rights: set[tuple[str, str]] = set()
        self.pods: dict[str, tuple[str, str]] = {}
        self.unreadable: set[str] = set()
        self.down = False
        self.asked: list[str] = []

    def add_agent(self, token: str, node: str, audience: str = AUDIENCE) -> None:
        """As Kubernetes ≥ 1.30 binds a projected token."""
        self.tokens[token] = ({"username": AGENT, "extra": {NODE_KEY: [node]}}, audience)

    def add_older_agent(self, token: str, pod: str, uid: str) -> None:
        """As before 1.30: bound to its pod alone."""
        self.tokens[token] = ({"username": AGENT, "extra": {POD_KEY: [pod], POD_UID_KEY: [uid]}}, AUDIENCE)

    def add_person(self, token: str, name: str, *paths: str) -> None:
        self.tokens[token] = ({"username": name}, AUDIENCE)
        self.rights |= {(name, path) for path in paths}

    async def request(self, method: str, path: str, *, body: bytes, timeout_seconds: float) -> bytes:
        kind = path.rpartition("/")[2]
        self._answering(f"{method} {kind}")
        spec = msgspec.json.decode(body)["spec"]
        status = self._token(spec) if kind == "tokenreviews" else self._access(spec)
        return msgspec.json.encode({"status": status})

    async def get(self, path: str, type_: type[Any]) -> Any:
        self._answering(f"GET {path}")
        name = path.rpartition("/")[2]
        if name in self.unreadable:
            raise KubernetesFault(f"GET {path}", "no answer", reason="NoAnswer")
        if name not in self.pods:
            raise KubernetesFault(f"GET {path}", "not found", status=404)
        uid, node = self.pods[name]
        return msgspec.convert({"metadata": {"name": name, "uid": uid}, "spec": {"nodeName": node}}, type_)

    def _answering(self, query: str) -> None:
        self.asked.append(query)
        if self.down:
            raise KubernetesFault(query, "no answer", reason="NoAnswer")

    def _token(self, spec: dict[str, Any]) -> dict[str, Any]:
        user, audience = self.tokens.get(spec["token"], ({}, ""))
        if not user or audience not in spec["audiences"]:
            return {"authenticated": False, "error": "invalid bearer token"}
        return {"authenticated": True, "user": user, "audiences": [audience]}

    def _access(self, spec: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": (spec["user"], spec["nonResourceAttributes"]["path"]) in self.rights}

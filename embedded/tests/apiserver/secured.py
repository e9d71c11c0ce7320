"""A server that enforces its rules, asked request by request as any user."""

import asyncio
import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from embedded.apiserver.authorization.bootstrap_roles import create_default_roles
from embedded.apiserver.bootstrap import create_system_objects
from embedded.apiserver.http.router import Router
from embedded.apiserver.request.messages import JSON, Request, Response
from embedded.apiserver.request.user_info import AUTHENTICATED, MASTERS, UserInfo, known_user

ROOT = UserInfo("root", groups=(MASTERS, AUTHENTICATED))
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"


def user(name: str, *groups: str) -> UserInfo:
    return known_user(name, groups=groups)


class Secured:
    """A core with its default roles; unless told otherwise `root` asks, who may do everything."""

    def __init__(self, clock: Any) -> None:
        self.clock = clock
        self.core = Router(clock)
        self.resources = self.core.resources
        create_system_objects(self.resources)
        create_default_roles(self.resources)

    def call(self, method: str, url: str, body: Any = None, who: UserInfo = ROOT, **headers: str) -> tuple[int, Any]:
        """Status and body; keyword headers use `_` for `-`."""
        parts = urlsplit(url)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        data = b"" if body is None else json.dumps(body).encode()
        request = Request(method, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), named, data, who)
        answer = asyncio.run(self.core.handle(request))
        told = isinstance(answer, Response) and answer.content_type == JSON
        return answer.status, json.loads(answer.body) if told else None

    def make(self, url: str, body: Any) -> Any:
        code, made = self.call("POST", url, body)
        assert code == 201, made
        return made

    def grant(self, who: str, *rules: Any, namespace: str = "", name: str = "test") -> None:
        """Give a user these rules, by a role and a binding of this name."""
        scope, prefix = (f"/namespaces/{namespace}", "") if namespace else ("", "cluster")
        self.make(f"{RBAC}{scope}/{prefix}roles", {"metadata": {"name": name}, "rules": list(rules)})
        reference = {"apiGroup": GROUP, "kind": "Role" if namespace else "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [{"kind": "User", "name": who}]}
        self.make(f"{RBAC}{scope}/{prefix}rolebindings", binding)


def rule(verbs: str, resources: str, group: str = "", names: str = "") -> dict[str, list[str]]:
    """Of words between spaces."""
    found = {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}
    return found | ({"resourceNames": names.split()} if names else {})

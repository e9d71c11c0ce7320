"""Who asks: what authentication found out about a request's sender, in the words of `authentication.k8s.io`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
NODES = "system:nodes"
NODE_USER = "system:node:"
ACCOUNT_USER = "system:serviceaccount:"
ACCOUNTS = "system:serviceaccounts"
# What a service account token proves beside its account, as keys of `extra`.
_PROVEN = "authentication.kubernetes.io/"
CREDENTIAL = _PROVEN + "credential-id"
POD_NAME, POD_UID = _PROVEN + "pod-name", _PROVEN + "pod-uid"
NODE_NAME, NODE_UID = _PROVEN + "node-name", _PROVEN + "node-uid"


@dataclass(frozen=True, slots=True)
class UserInfo:
    """A user; `groups` is complete, `extra` holds what else is proven, such as the node of a pod-bound token."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def node(self) -> str:
        """The node whose kubelet this is; empty for everybody else."""
        return self.name.removeprefix(NODE_USER) if NODES in self.groups and self.name.startswith(NODE_USER) else ""

    def as_info(self) -> dict[str, object]:
        """As `UserInfo` of authentication.k8s.io/v1; empty fields are left out."""
        extra = {key: list(values) for key, values in sorted(self.extra.items())}
        info = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {key: value for key, value in info.items() if value}


ANONYMOUS = UserInfo("system:anonymous", groups=(UNAUTHENTICATED,))
# Writes that no request caused are made by the controllers inside the server.
INTERNAL = UserInfo("system:kube-controller-manager", groups=(MASTERS, AUTHENTICATED))


def known_user(name: str, uid: str = "", groups: tuple[str, ...] = ()) -> UserInfo:
    """A user of the token file, with the groups that its name brings along."""
    inherent = (NODES,) if name.startswith(NODE_USER) else ()
    return UserInfo(name, uid, tuple(dict.fromkeys((*groups, *inherent, AUTHENTICATED))))

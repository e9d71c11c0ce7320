"""Who asks: what authentication found out about a request's sender, in the words of `authentication.k8s.io`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user; `groups` is complete, `extra` holds what else is proven, such as the node of a pod-bound token."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def as_info(self) -> dict[str, object]:
        """As `UserInfo` of authentication.k8s.io/v1; empty fields are left out."""
        extra = {key: list(values) for key, values in sorted(self.extra.items())}
        info = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {key: value for key, value in info.items() if value}


ANONYMOUS = Identity("system:anonymous", groups=(UNAUTHENTICATED,))
# Writes that no request caused are made by the controllers inside the server.
INTERNAL = Identity("system:kube-controller-manager", groups=(MASTERS, AUTHENTICATED))

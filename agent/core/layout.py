"""Where pods live in the cgroup tree (cgroupfs driver), as paths below a controller's mount.

Source: Koordinator pkg/koordlet/util/system/cgroup_driver*.go, kubelet container manager.
"""

from __future__ import annotations

import msgspec

from model.qos import KubernetesQoS


class KubepodsLayout(msgspec.Struct, frozen=True):
    """`root` is the kubepods directory below the controller, e.g. `/kubepods`."""

    root: str = "/kubepods"

    @property
    def best_effort(self) -> str:
        return f"{self.root}/besteffort"

    def pod(self, qos: KubernetesQoS, uid: str) -> str:
        """A pod's directory; Guaranteed pods sit directly below the root."""
        below = {KubernetesQoS.BURSTABLE: "/burstable", KubernetesQoS.BEST_EFFORT: "/besteffort"}.get(qos, "")
        return f"{self.root}{below}/pod{uid}"

"""Mirror pods of static pods that claim a cgroup which is another pod's, too.

A mirror says by an annotation which cgroup it stands for, so whoever may create pods may claim any. Where two claim
one, it is the pod's whose uid it is, and otherwise nobody's: its use counts as the system's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from model.pod.pod import Pod

DISPUTED = "disputed"
"""The name of no cgroup: a uid and a configuration's hash have more characters, and other ones."""


def undisputed(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """The pods; a mirror whose cgroup another one has, or claims, stands for none."""
    listed = tuple(pods)
    mirrors = [pod for pod in listed if pod.cgroup_uid not in ("", pod.uid)]
    if not mirrors:
        return listed
    claimed = Counter(pod.cgroup_uid for pod in mirrors) + Counter(pod.uid for pod in listed)
    return tuple(
        msgspec.structs.replace(pod, cgroup_uid=DISPUTED)
        if pod.cgroup_uid not in ("", pod.uid) and claimed[pod.cgroup_uid] > 1
        else pod
        for pod in listed
    )

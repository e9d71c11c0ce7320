"""Who a container runs as: pod and container say it, or the image; names are looked up in the image's own files. Pure.

Source: kubernetes pkg/kubelet/kuberuntime/security_context.go (determineEffectiveSecurityContext, verifyRunAsNonRoot),
containerd internal/cri/server/container_create.go (generateUserString) and pkg/oci/spec_opts.go (WithUser). As there,
a group that follows the user's number in an image's `User` is not used: /etc/passwd says it, else it is 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from embedded.node.objects.environment import Unsupported
from embedded.node.objects.pod import PodContainer, PodObject, PodSecurity, Security


class Accounts(msgspec.Struct, frozen=True):
    """The text of an image's /etc/passwd and /etc/group."""

    passwd: str = ""
    group: str = ""


class User(msgspec.Struct, frozen=True):
    """`groups` are all of them, ascending, the primary one included."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


def user_of(pod: PodObject, container: PodContainer, image_user: str, accounts: Accounts) -> User:
    """Raises Unsupported with the kubelet's or containerd's words where nobody can be it, or root must not."""
    own, shared = container.security_context or Security(), pod.spec.security_context or PodSecurity()
    asked = own.run_as_user if own.run_as_user is not None else shared.run_as_user
    named = image_user.partition(":")[0]
    if own.run_as_non_root if own.run_as_non_root is not None else shared.run_as_non_root:
        _refuse_root(pod, container, asked, named)
    found = _account(str(asked) if asked is not None else named or "0", accounts)
    group = own.run_as_group if own.run_as_group is not None else shared.run_as_group
    gid = group if group is not None else found.gid
    more = [*(shared.supplemental_groups or []), *([shared.fs_group] if shared.fs_group is not None else [])]
    merged = found.groups if shared.supplemental_groups_policy != "Strict" else ()
    return User(found.uid, gid, tuple(sorted({gid, *merged, *more})), found.home)


def only_user(pod: PodObject) -> int | None:
    """Whom all containers are told to be, if it is one. Source: kubernetes pkg/securitycontext (FsUserFrom)."""
    shared = (pod.spec.security_context or PodSecurity()).run_as_user
    asked = set()
    for container in (*(pod.spec.init_containers or []), *pod.spec.containers):
        own = (container.security_context or Security()).run_as_user
        asked.add(own if own is not None else shared)
    return asked.pop() if len(asked) == 1 else None


def _refuse_root(pod: PodObject, container: PodContainer, asked: int | None, named: str) -> None:
    where = f'(pod: "{pod.full_name}", container: {container.name})'
    if asked == 0:
        raise Unsupported(f"container's runAsUser breaks non-root policy {where}")
    if asked is not None:
        return
    if named and not named.isdecimal():
        raise Unsupported(
            f"container has runAsNonRoot and image has non-numeric user ({named}), cannot verify user is non-root "
            f"{where}"
        )
    if not named or int(named) == 0:
        raise Unsupported(f"container has runAsNonRoot and image will run as root {where}")


def _account(name: str, accounts: Accounts) -> User:
    """By name or number; a number that /etc/passwd does not have is a user all the same, in no group but 0."""
    for row in _rows(accounts.passwd, 7):
        if row[0] == name or (name.isdecimal() and row[2] == name):
            return User(int(row[2]), int(row[3]), tuple(_memberships(row[0], accounts.group)), row[5] or "/")
    if not name.isdecimal():
        raise Unsupported(f"unable to find user {name}: no matching entries in passwd file")
    return User(int(name), 0, (), "/")


def _memberships(user: str, group: str) -> Iterator[int]:
    for row in _rows(group, 4):
        if user in row[3].split(","):
            yield int(row[2])


def _rows(text: str, fields: int) -> Iterator[list[str]]:
    """Well-formed lines; ids are numbers."""
    for line in text.splitlines():
        row = line.split(":")
        if len(row) == fields and all(each.isdecimal() for each in row[2 : 4 if fields == 7 else 3]):
            yield row

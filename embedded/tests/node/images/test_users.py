"""Who a container runs as, from pod, container and image."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.node.images.users import Accounts, User, only_user, user_of
from embedded.node.objects.environment import Unsupported

ACCOUNTS = Accounts(
    "root:x:0:0:root:/root:/bin/sh\nbroken line\nweb:x:33:44:web:/srv:/bin/sh\nbad:x:a:b:c:/:/\n",
    "root:x:0:\nextra:x:50:other,web\n",
)


def user(pod: Any, image_user: str, shared: dict[str, Any], own: dict[str, Any]) -> User:
    built = pod(securityContext=shared, containers=[{"securityContext": own}])
    return user_of(built, built.spec.containers[0], image_user, ACCOUNTS)


@pytest.mark.parametrize(
    ("image_user", "shared", "own", "expected"),
    [
        pytest.param("", {}, {}, User(0, 0, (0,), "/root"), id="root"),
        pytest.param("web", {}, {}, User(33, 44, (44, 50), "/srv"), id="by name"),
        pytest.param("33", {}, {}, User(33, 44, (44, 50), "/srv"), id="by number"),
        pytest.param("65532:65532", {}, {}, User(65532, 0, (0,), "/"), id="not in passwd"),
        pytest.param("web", {"runAsUser": 7}, {}, User(7, 0, (0,), "/"), id="the pod says"),
        pytest.param("web", {"runAsUser": 7}, {"runAsUser": 33}, User(33, 44, (44, 50), "/srv"), id="its own wins"),
        pytest.param("web", {"runAsGroup": 9}, {}, User(33, 9, (9, 50), "/srv"), id="a group"),
        pytest.param(
            "", {"fsGroup": 5, "supplementalGroups": [8, 5]}, {}, User(0, 0, (0, 5, 8), "/root"), id="more groups"
        ),
        pytest.param("web", {"supplementalGroupsPolicy": "Strict"}, {}, User(33, 44, (44,), "/srv"), id="strict"),
    ],
)
def test_user_of(pod: Any, image_user: str, shared: dict[str, Any], own: dict[str, Any], expected: User) -> None:
    """Number, group, groups, home."""
    assert user(pod, image_user, shared, own) == expected


WHERE = '(pod: "web_shop(u-1)", container: main)'


@pytest.mark.parametrize(
    ("image_user", "shared", "own", "message"),
    [
        pytest.param(
            "", {"runAsNonRoot": True}, {}, f"container has runAsNonRoot and image will run as root {WHERE}", id="root"
        ),
        pytest.param(
            "web",
            {"runAsNonRoot": True},
            {},
            "container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root " + WHERE,
            id="a name",
        ),
        pytest.param(
            "web",
            {"runAsNonRoot": True},
            {"runAsUser": 0},
            f"container's runAsUser breaks non-root policy {WHERE}",
            id="asked for root",
        ),
        pytest.param(
            "nobody", {}, {}, "unable to find user nobody: no matching entries in passwd file", id="unknown name"
        ),
    ],
)
def test_refused(pod: Any, image_user: str, shared: dict[str, Any], own: dict[str, Any], message: str) -> None:
    """In the kubelet's and containerd's words."""
    with pytest.raises(Unsupported) as refused:
        user(pod, image_user, shared, own)
    assert str(refused.value) == message


@pytest.mark.parametrize(("image_user", "own"), [("1", {}), ("web", {"runAsUser": 33}), ("", {"runAsNonRoot": False})])
def test_not_root(pod: Any, image_user: str, own: dict[str, Any]) -> None:
    """A number that is not 0 satisfies the pod, and a container may say that it does not mind."""
    user(pod, image_user, {"runAsNonRoot": True}, own)


@pytest.mark.parametrize(
    ("shared", "own", "expected"),
    [
        ({}, [{}, {}], None),
        ({"runAsUser": 5}, [{}, {}], 5),
        ({"runAsUser": 5}, [{}, {"runAsUser": 6}], None),
        ({}, [{"runAsUser": 6}, {"runAsUser": 6}], 6),
    ],
)
def test_only_user(pod: Any, shared: dict[str, Any], own: list[dict[str, Any]], expected: int | None) -> None:
    """One user only where all containers are told the same."""
    assert only_user(pod(securityContext=shared, containers=[{"securityContext": each} for each in own])) == expected

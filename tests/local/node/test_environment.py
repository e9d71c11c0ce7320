"""Variables and `$(VAR)` follow the kubelet; what cannot be given is refused with its name."""

from __future__ import annotations

from typing import Any

import pytest

from local.node.environment import Unsupported, environment, expand


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("plain", "plain"),
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$((1+$(A)))", "$((1+$(A)))"),
        ("$", "$"),
    ],
)
def test_expand(text: str, expanded: str) -> None:
    """Only `$(NAME)` of a known name is replaced; `$$` escapes."""
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def variables(pod: Any, env: list[dict[str, Any]], **more: Any) -> dict[str, str]:
    built = pod(containers=[{"env": env, **more.pop("container", {})}], **more)
    return environment(built, built.spec.containers[0], "/bin", "/home")


def test_minimal(pod: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the node's own environment passes on."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "do not leak")
    assert variables(pod, []) == {"PATH": "/bin", "HOME": "/home", "LANG": "C.UTF-8", "HOSTNAME": "web"}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "web"),
        ("metadata.namespace", "shop"),
        ("metadata.uid", "u-1"),
        ("spec.nodeName", "n1"),
        ("status.podIP", "127.0.0.1"),
        ("status.hostIP", "127.0.0.1"),
        ("metadata.labels['x/y']", "label"),
        ("metadata.annotations['none']", ""),
    ],
)
def test_field(pod: Any, path: str, value: str) -> None:
    """The downward API by environment."""
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert variables(pod, env, metadata={"labels": {"x/y": "label"}})["V"] == value


def test_order(pod: Any) -> None:
    """A variable sees those declared before it, and may replace a default."""
    env = [
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)$(C)"},
        {"name": "C", "value": "3"},
        {"name": "PATH", "value": "/x"},
    ]
    assert variables(pod, env) | {"B": "1$(C)", "PATH": "/x"} == variables(pod, env)


@pytest.mark.parametrize(
    ("env", "container", "names"),
    [
        pytest.param(
            [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}], {}, "secretKeyRef", id="secret"
        ),
        pytest.param(
            [{"name": "S", "valueFrom": {"fieldRef": {"fieldPath": "spec.what"}}}], {}, "spec.what", id="field"
        ),
        pytest.param([], {"envFrom": [{"configMapRef": {"name": "c"}}]}, "envFrom", id="envFrom"),
    ],
)
def test_refused(pod: Any, env: list[dict[str, Any]], container: dict[str, Any], names: str) -> None:
    """A source that is not there is refused, and the message names it."""
    with pytest.raises(Unsupported, match=names):
        variables(pod, env, container=container)


def test_optional(pod: Any) -> None:
    """An optional reference is simply absent."""
    env = [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}}}]
    assert "S" not in variables(pod, env, container={"envFrom": [{"secretRef": {"name": "s", "optional": True}}]})

"""Variables and `$(VAR)` follow the kubelet; what cannot be given is refused with its name."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.node.objects.environment import (
    EnvironmentSources,
    Unsupported,
    api_server_variables,
    declared,
    expand,
    given,
    hostname,
    resource_field,
)
from embedded.node.objects.sources import SourceKind, SourceRef, Sources
from embedded.resources import CPU, MEMORY, ResourceVector

SOURCES = Sources(
    {
        SourceRef(SourceKind.CONFIG_MAP, "c"): {"k": b"one", "other": b"two"},
        SourceRef(SourceKind.SECRET, "s"): {"k": b"secret"},
    }
)


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
    around = EnvironmentSources("/bin", "/home", SOURCES)
    return given(built, around) | declared(built, built.spec.containers[0], around)


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


def key_ref(kind: str, name: str, key: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": "V", "valueFrom": {kind: {"name": name, "key": key, **more}}}]


@pytest.mark.parametrize(
    ("env", "container", "expected"),
    [
        pytest.param(key_ref("configMapKeyRef", "c", "k"), {}, {"V": "one"}, id="config map"),
        pytest.param(key_ref("secretKeyRef", "s", "k"), {}, {"V": "secret"}, id="secret"),
        pytest.param([], {"envFrom": [{"configMapRef": {"name": "c"}}]}, {"k": "one", "other": "two"}, id="all keys"),
        pytest.param(
            [], {"envFrom": [{"prefix": "P_", "secretRef": {"name": "s"}}]}, {"P_k": "secret"}, id="all, with a prefix"
        ),
        pytest.param(
            [{"name": "k", "value": "own"}, {"name": "W", "value": "$(other)"}],
            {"envFrom": [{"configMapRef": {"name": "c"}}]},
            {"k": "own", "other": "two", "W": "two"},
            id="env wins over envFrom, and sees it",
        ),
        pytest.param(
            [], {"envFrom": [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]},
            {"k": "secret", "other": "two"}, id="the last envFrom wins",
        ),
        pytest.param(key_ref("secretKeyRef", "none", "k", optional=True), {}, {}, id="optional object"),
        pytest.param(key_ref("secretKeyRef", "s", "none", optional=True), {}, {}, id="optional key"),
        pytest.param([], {"envFrom": [{"secretRef": {"name": "none", "optional": True}}]}, {}, id="optional envFrom"),
    ],
)  # fmt: skip
def test_sources(pod: Any, env: list[dict[str, Any]], container: dict[str, Any], expected: dict[str, str]) -> None:
    """Values of ConfigMaps and Secrets."""
    found = variables(pod, env, container=container)
    assert {name: value for name, value in found.items() if name not in variables(pod, [])} == expected


@pytest.mark.parametrize(
    ("env", "container", "message"),
    [
        pytest.param(key_ref("secretKeyRef", "none", "k"), {}, 'secret "none" not found', id="no secret"),
        pytest.param(
            key_ref("configMapKeyRef", "c", "none"), {}, "couldn't find key none in ConfigMap shop/c", id="no key"
        ),
        pytest.param(
            [{"name": "S", "valueFrom": {"fieldRef": {"fieldPath": "spec.what"}}}], {}, "spec.what", id="field"
        ),
        pytest.param([], {"envFrom": [{"configMapRef": {"name": "x"}}]}, 'configmap "x" not found', id="envFrom"),
        pytest.param([{"name": "V", "valueFrom": {"fileKeyRef": {}}}], {}, "fileKeyRef", id="unknown kind of source"),
    ],
)
def test_refused(pod: Any, env: list[dict[str, Any]], container: dict[str, Any], message: str) -> None:
    """A source that is not there is refused in the kubelet's words."""
    with pytest.raises(Unsupported, match=message):
        variables(pod, env, container=container)


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "1m", "1500"),
        ("limits.cpu", None, "2"),
        ("requests.cpu", "1", "1"),
        ("requests.memory", "1Mi", "64"),
        ("requests.memory", "0", str(64 << 20)),
        ("limits.memory", "1Gi", "4"),
        ("requests.ephemeral-storage", None, "0"),
    ],
)
def test_resource_field(pod: Any, resource: str, divisor: str | None, value: str) -> None:
    """Rounded up to the divisor; a limit that is not set is what the node has."""
    built = pod(containers=[{"resources": {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "1500m"}}}])
    node = ResourceVector({CPU: 8000, MEMORY: 4 << 30})
    assert resource_field(built, built.spec.containers[0], {"resource": resource, "divisor": divisor}, node) == value


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://127.0.0.1:6443", "127.0.0.1", "6443"),
        ("https://api.example", "api.example", "443"),
        ("http://[::1]:80/x", "::1", "80"),
    ],
)
def test_api_server(pod: Any, url: str, host: str, port: str) -> None:
    """Where clients in a pod find it; `$(NAME)` knows it too."""
    around = EnvironmentSources("/bin", "/home", api_server=api_server_variables(url))
    built = pod(containers=[{"env": [{"name": "URL", "value": "$(KUBERNETES_SERVICE_HOST)"}]}])
    told = declared(built, built.spec.containers[0], around)
    assert told == {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "URL": host}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, "web"),
        ({"hostname": "own"}, "own"),
        ({"hostNetwork": True}, "n1"),
        ({"metadata": {"name": "a" * 62 + ".b"}}, "a" * 62),
    ],
)
def test_hostname(pod: Any, spec: dict[str, Any], expected: str) -> None:
    """The pod's name, cut as a host name must be."""
    assert hostname(pod(**spec)) == expected


def test_address(pod: Any) -> None:
    """Its own and the node's, as its status has them."""
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"status.{name}"}}} for name in ("podIP", "hostIP")]
    told = variables(pod, env, status={"podIP": "127.65.0.2", "hostIP": "127.65.0.1"})
    assert (told["podIP"], told["hostIP"]) == ("127.65.0.2", "127.65.0.1")

"""What the body of a behaviour gets: a client to check, a namespace of its own, and ways to set a scene."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from embedded.tests.conformance.clients import Client, Refused
from embedded.tests.conformance.kubectl import Done, Kubectl
from embedded.tests.conformance.python_client import PythonClient
from embedded.tests.conformance.raw import RawClient
from embedded.tests.conformance.resources import DEFINITIONS, NAMESPACES, NODES, Object, Resource, definition, widgets

# How long a controller of a cluster may take; the bound of every wait.
PATIENCE_SECONDS = 30.0
Refusals = list[Refused]
_numbers = itertools.count()


def unique(prefix: str) -> str:
    """A name no other test, process or run uses."""
    return f"{prefix}-{os.getpid():x}{int(time.time()) & 0xFFFFF:x}-{next(_numbers)}"


@dataclass
class Case:
    """One run of one behaviour through one client.

    What is `given` goes in over raw HTTP, so that only the promise itself is checked through the client.
    """

    raw: RawClient
    client: Client
    kubeconfig: str
    foreign: bool  # a cluster that is not ours, named by --kubeconfig
    ns: str
    _undo: list[Callable[[], Any]] = field(default_factory=list)

    @property
    def by_raw(self) -> bool:
        return isinstance(self.client, RawClient)

    @property
    def by_kubectl(self) -> bool:
        return isinstance(self.client, Kubectl)

    @property
    def python(self) -> PythonClient:
        assert isinstance(self.client, PythonClient)
        return self.client

    @property
    def binary(self) -> Kubectl:
        assert isinstance(self.client, Kubectl)
        return self.client

    def kubectl(self, *arguments: str, **more: Any) -> Done:
        """kubectl in this case's namespace."""
        return self.binary.run("--namespace", self.ns, *arguments, **more)

    # -- the scene -------------------------------------------------------------------------------------------

    def defer(self, undo: Callable[[], Any]) -> None:
        self._undo.append(undo)

    def close(self) -> None:
        """Takes back what the case put outside its namespace; what is gone already is fine."""
        for undo in reversed(self._undo):
            with contextlib.suppress(Refused):
                undo()

    def unique(self, prefix: str = "list") -> str:
        return unique(prefix)

    def given(self, resource: Resource, obj: Object) -> Object:
        """An object that exists before the client does anything."""
        if not resource.namespaced:
            self.removed_later(resource, obj["metadata"]["name"])
        return self.raw.create(resource, self.ns, obj)

    def removed_later(self, resource: Resource, name: str) -> None:
        self.defer(lambda: self.raw.delete(resource, "", name))

    def namespace(self, labels: dict[str, str] | None = None) -> str:
        """Another namespace."""
        name = unique("list")
        self.given(NAMESPACES, NAMESPACES.object(name, labels))
        return name

    def node(self, **spec: Any) -> str:
        """A node that nobody runs."""
        name = unique("node")
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        self.given(NODES, NODES.object(name, spec=spec, status={"capacity": capacity, "allocatable": capacity}))
        return name

    def custom(self, schema: Object | None = None, **version: Any) -> Resource:
        """An established Widget type in a group of its own; `schema` describes its `.spec`."""
        group = unique("g") + ".example.com"
        self.given(DEFINITIONS, definition(group, schema, **version))
        return self.served(widgets(group))

    def served(self, resource: Resource) -> Resource:
        self.eventually(lambda: self.raw.answer("GET", resource.path(self.ns)).code == 200, f"{resource.plural} served")
        return resource

    # -- acts of the client under test -----------------------------------------------------------------------

    def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        if not resource.namespaced and "name" in obj["metadata"]:
            self.removed_later(resource, obj["metadata"]["name"])
        return self.client.create(resource, self._where(resource), obj, **options)

    def get(self, resource: Resource, name: str) -> Object:
        return self.client.get(resource, self._where(resource), name)

    def list(self, resource: Resource, labels: str = "", fields: str = "") -> list[Object]:
        return self.client.list(resource, self._where(resource), labels, fields)

    def replace(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return self.client.replace(resource, self._where(resource), obj, **options)

    def patch(self, resource: Resource, name: str, kind: str, body: Any, **options: Any) -> Object:
        return self.client.patch(resource, (self._where(resource), name), kind, body, **options)

    def apply(self, resource: Resource, obj: Object, manager: str, force: bool = False, **options: Any) -> Object:
        return self.client.apply(resource, self._where(resource), obj, manager, force, **options)

    def delete(self, resource: Resource, name: str, **options: Any) -> None:
        self.client.delete(resource, self._where(resource), name, **options)

    def _where(self, resource: Resource) -> str:
        return self.ns if resource.namespaced else ""

    # -- what is true now ------------------------------------------------------------------------------------

    def path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        return resource.path(self._where(resource), name, subresource)

    def now(self, resource: Resource, name: str) -> Object:
        """The object as the server has it, whatever the client under test shows."""
        return self.raw.get(resource, self._where(resource), name)

    def exists(self, resource: Resource, name: str) -> bool:
        return self.raw.answer("GET", self.path(resource, name)).code == 200

    def change(self, resource: Resource, name: str, body: Object, subresource: str = "") -> Object:
        """A merge patch from elsewhere."""
        return self.raw.patch(resource, (self._where(resource), name), "merge", body, subresource)

    def eventually(self, probe: Callable[[], Any], what: str) -> Any:
        """The first true value of the probe; fails after PATIENCE_SECONDS."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        pause = 0.02
        while time.monotonic() < give_up:
            if found := probe():
                return found
            time.sleep(pause)
            pause = min(pause * 1.5, 0.5)
        raise AssertionError(f"not within {PATIENCE_SECONDS:g} s: {what}")

    def gone(self, resource: Resource, name: str) -> None:
        self.eventually(lambda: not self.exists(resource, name), f"{resource.kind} {name} gone")

    @contextlib.contextmanager
    def refused(self, reason: str, *words: str) -> Iterator[Refusals]:
        """The block must be refused for this reason with all of these words in the message."""
        seen: Refusals = []
        with pytest.raises(Refused) as caught:
            yield seen
        seen.append(caught.value)
        assert caught.value.reason == reason, caught.value
        assert [word for word in words if word not in caught.value.message] == [], caught.value

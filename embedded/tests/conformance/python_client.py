"""The official Python client: the typed API of built-in kinds, CustomObjectsApi for the others."""

from __future__ import annotations

import re
from typing import Any

import kubernetes

from embedded.tests.conformance.clients import Refused
from embedded.tests.conformance.raw import PATCH_TYPES
from embedded.tests.conformance.resources import Object, Resource

_APIS = {
    "": "CoreV1Api",
    "batch": "BatchV1Api",
    "policy": "PolicyV1Api",
    "coordination.k8s.io": "CoordinationV1Api",
    "scheduling.k8s.io": "SchedulingV1Api",
    "apiextensions.k8s.io": "ApiextensionsV1Api",
    "admissionregistration.k8s.io": "AdmissionregistrationV1Api",
    "events.k8s.io": "EventsV1Api",
}
_DELETING = {"propagation": "propagation_policy", "grace": "grace_period_seconds"}


class PythonClient:
    """Objects go in as dicts and come out as the typed models say, turned back into JSON."""

    def __init__(self, configuration: kubernetes.client.Configuration) -> None:
        self.api = kubernetes.client.ApiClient(configuration)

    def close(self) -> None:
        self.api.close()

    def typed(self, group: str = "") -> Any:
        """The API class of a built-in group."""
        return getattr(kubernetes.client, _APIS[group])(self.api)

    def _call(self, verb: str, resource: Resource, namespace: str, *arguments: Any, **options: Any) -> Object:
        suffix = options.pop("suffix", "")
        if resource.group in _APIS:
            snake = re.sub(r"(?<!^)(?=[A-Z])", "_", resource.kind).lower()
            scope = "namespaced_" if resource.namespaced else ""
            method = getattr(self.typed(resource.group), f"{'read' if verb == 'get' else verb}_{scope}{snake}{suffix}")
            where = [namespace] if resource.namespaced else []
            arguments = (
                (*arguments[:1], *where, *arguments[1:]) if verb not in ("create", "list") else (*where, *arguments)
            )
        else:
            scope = "namespaced" if resource.namespaced else "cluster"
            method = getattr(kubernetes.client.CustomObjectsApi(self.api), f"{verb}_{scope}_custom_object{suffix}")
            where = [namespace] if resource.namespaced else []
            arguments = (resource.group, resource.version, *where, resource.plural, *arguments)
        try:
            return self.api.sanitize_for_serialization(method(*arguments, **options)) or {}
        except kubernetes.client.ApiException as refused:
            raise Refused.from_body(refused.status or 0, refused.body or "") from None

    def create(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        return self._call("create", resource, namespace, obj, **options)

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        return self._call("get", resource, namespace, name)

    def list(self, resource: Resource, namespace: str, labels: str = "", fields: str = "") -> list[Object]:
        found = self._call("list", resource, namespace, label_selector=labels, field_selector=fields)
        items: list[Object] = found["items"]
        return items

    def replace(self, resource: Resource, namespace: str, obj: Object, **options: Any) -> Object:
        sub = options.pop("subresource", "")
        return self._call(
            "replace", resource, namespace, obj["metadata"]["name"], obj, suffix=f"_{sub}" if sub else "", **options
        )

    def patch(
        self, resource: Resource, target: tuple[str, str], kind: str, body: Any, subresource: str = "", **options: Any
    ) -> Object:
        options |= {"_content_type": PATCH_TYPES[kind], "suffix": f"_{subresource}" if subresource else ""}
        return self._call("patch", resource, target[0], target[1], body, **options)

    def apply(
        self, resource: Resource, namespace: str, obj: Object, manager: str, force: bool = False, **options: Any
    ) -> Object:
        options |= {"field_manager": manager} | ({"force": True} if force else {})
        return self.patch(resource, (namespace, obj["metadata"]["name"]), "apply", obj, **options)

    def delete(self, resource: Resource, namespace: str, name: str, **options: Any) -> None:
        self._call(
            "delete", resource, namespace, name, **{_DELETING.get(key, key): value for key, value in options.items()}
        )

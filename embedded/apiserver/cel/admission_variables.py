"""One write as the expressions of admission see it: `object`, `oldObject`, `request`, `namespaceObject`, `params`."""

from __future__ import annotations

from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.cel import authorizer
from embedded.apiserver.cel.authorizer import AuthorizerContext
from embedded.apiserver.cel.expressions import Activation, EvaluationError, Program
from embedded.apiserver.cel.schema_types import moment
from embedded.apiserver.cel.variables import EVALUATED
from embedded.apiserver.request.operation import Operation, request_of, shown

# What of a namespace's metadata is shown. Source: kubernetes `admission/plugin/cel/condition.go`.
_SHOWN = (
    *("name", "generateName", "uid", "resourceVersion", "generation", "deletionGracePeriodSeconds"),
    *("labels", "annotations", "finalizers", "creationTimestamp", "deletionTimestamp"),
)


class AdmissionVariables:
    """A write; what of it an expression asks for is converted once for each version that it is shown in."""

    def __init__(self, operation: Operation, namespace: Object | None, asking: AuthorizerContext) -> None:
        self.operation = operation
        self._namespace = namespace
        self._asking = asking
        self._made: dict[tuple[str, int], tuple[Object | None, Activation]] = {}

    def value(self, program: Program, shown_as: ResourceType, params: Object | None = None) -> Any:
        """The value of an expression; raises EvaluationError, which names the expression."""
        try:
            with authorizer.asking(self._asking):
                return program.value(self._activation(shown_as, params))
        except EvaluationError as error:
            raise EvaluationError(f"expression '{program.text}' resulted in error: {error}") from None

    def _activation(self, shown_as: ResourceType, params: Object | None) -> Activation:
        key = (shown_as.version, id(params))
        if key not in self._made:
            self._made[key] = (params, EVALUATED.activation(self._names(shown_as, params)))
        return self._made[key][1]

    def _names(self, shown_as: ResourceType, params: Object | None) -> dict[str, Any]:
        operation = self.operation
        rtype, in_namespace = operation.rtype, operation.namespace if operation.rtype.namespaced else ""
        return {
            "object": shown(operation, operation.new, shown_as),
            "oldObject": shown(operation, operation.old, shown_as),
            "request": request_of(operation, shown_as),
            "namespaceObject": _namespace_object(self._namespace),
            "params": params,
            "authorizer": authorizer.OF_REQUEST,
            "authorizer.requestResource": authorizer.resource_check(
                rtype.group, rtype.version, rtype.plural, operation.subresource, in_namespace, operation.name
            ),
        }


def _namespace_object(namespace: Object | None) -> Object | None:
    if namespace is None:
        return None
    meta = {key: namespace["metadata"][key] for key in _SHOWN if key in namespace["metadata"]}
    for key in ("creationTimestamp", "deletionTimestamp"):
        if key in meta:
            meta[key] = moment(meta[key])
    return {"metadata": meta, "spec": namespace.get("spec") or {}, "status": namespace.get("status") or {}}

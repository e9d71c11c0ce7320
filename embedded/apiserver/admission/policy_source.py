"""The admission policies that are stored, ready to be asked, and the parameters their bindings name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from embedded.apiserver.admission.matching import ANYTHING, Matching, matching_of
from embedded.apiserver.apimachinery.objects import Object, name_of
from embedded.apiserver.apimachinery.resource_types import VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS, ResourceType
from embedded.apiserver.apimachinery.selectors import EVERYTHING, Filter, parse_label_selector
from embedded.apiserver.cel.expressions import Program
from embedded.apiserver.cel.match_conditions import programs
from embedded.apiserver.cel.variables import Compiler
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.operation import Operation


class Misconfigured(ValueError):
    """A policy, or a binding of it, that names what is not there."""

    def __init__(self, message: str, of_binding: bool) -> None:
        super().__init__(message)
        self.of_binding = of_binding


@dataclass(frozen=True, slots=True)
class Validation:
    """One expression that must hold, and what is said where it does not."""

    program: Program
    message: str
    told: Program | None
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """One stored policy, its expressions compiled."""

    name: str
    matching: Matching
    fails: bool  # what cannot be computed refuses the write
    conditions: tuple[Program, ...]
    validations: tuple[Validation, ...]
    annotations: tuple[Program, ...]
    param_kind: Object | None


@dataclass(frozen=True, slots=True)
class Binding:
    """One use of a policy."""

    name: str
    policy: str
    matching: Matching
    param_ref: Object | None
    actions: frozenset[str]


Bound = tuple[Policy, tuple[Binding, ...]]


class PolicySource:
    """Looks at the store each time; compiles the policies only when one of them, or a binding, changed."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._known: tuple[list[int], list[Bound]] = ([], [])

    def bound(self) -> list[Bound]:
        """Policies that are bound, by name, each with its bindings, by name."""
        store = self._resources.store
        if not store.count(VALIDATING_POLICIES.id) or not store.count(VALIDATING_POLICY_BINDINGS.id):
            return []
        kinds = (VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS)
        revisions = [record.revision for kind in kinds for record in store.select(kind.id, EVERYTHING)]
        if revisions != self._known[0]:
            self._known = (revisions, self._compiled())
        return self._known[1]

    def _compiled(self) -> list[Bound]:
        found = sorted(map(_binding, self._resources.objects(VALIDATING_POLICY_BINDINGS)), key=lambda each: each.name)
        bound = []
        for obj in sorted(self._resources.objects(VALIDATING_POLICIES), key=name_of):
            bindings = tuple(binding for binding in found if binding.policy == name_of(obj))
            if bindings:
                bound.append((_policy(obj), bindings))
        return bound

    def params(self, policy: Policy, binding: Binding, operation: Operation) -> Sequence[Object | None]:
        """With what a binding has its policy look at a write: [None] without parameters. Raises Misconfigured."""
        kind, ref = policy.param_kind, binding.param_ref
        if kind is None:
            return [None]
        rtype = self._resources.registry.by_kind(kind["apiVersion"], kind["kind"])
        if rtype is None:
            told = f"{kind['apiVersion']}, Kind={kind['kind']}"
            raise Misconfigured(f"failed to find resource referenced by paramKind: '{told}'", of_binding=False)
        if ref is None:
            return [None]
        found = list(self._referred(rtype, ref, _namespace(rtype, ref, operation)))
        if not found and ref["parameterNotFoundAction"] == "Deny":
            raise Misconfigured(
                "no params found for policy binding with `Deny` parameterNotFoundAction", of_binding=True
            )
        return found

    def _referred(self, rtype: ResourceType, ref: Object, namespace: str) -> Iterable[Object]:
        if ref.get("name"):
            found = self._resources.find(rtype, namespace, ref["name"])
            return [] if found is None else [found]
        wanted = Filter(namespace, labels=parse_label_selector(ref["selector"]) or ())
        return self._resources.objects(rtype, wanted)


def _namespace(rtype: ResourceType, ref: Object, operation: Operation) -> str:
    given = str(ref.get("namespace") or "")
    if not rtype.namespaced:
        if given:
            raise Misconfigured(
                "paramRef.namespace must not be provided for a cluster-scoped `paramKind`", of_binding=True
            )
        return ""
    if not given and not operation.namespace:
        raise Misconfigured(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources", of_binding=True
        )
    return given or operation.namespace


def _policy(obj: Object) -> Policy:
    spec = obj["spec"]
    params = spec.get("paramKind") is not None
    compiler = Compiler(params)
    for variable in spec.get("variables") or ():
        compiler.add(variable["name"], variable["expression"])
    annotations = (each["valueExpression"] for each in spec.get("auditAnnotations") or ())
    return Policy(
        name=name_of(obj),
        matching=matching_of(spec["matchConstraints"], "resourceRules"),
        fails=spec["failurePolicy"] == "Fail",
        conditions=programs(spec.get("matchConditions") or (), params),
        validations=tuple(_validation(each, compiler) for each in spec.get("validations") or ()),
        annotations=tuple(compiler.compile(text, ("string", "null_type")) for text in annotations),
        param_kind=spec.get("paramKind"),
    )


def _validation(found: Object, compiler: Compiler) -> Validation:
    told = found.get("messageExpression")
    return Validation(
        program=compiler.compile(found["expression"], ("bool",)),
        message=found.get("message") or "",
        told=compiler.compile(told, ("string",), authorizer=False) if told else None,
        reason=found.get("reason") or "Invalid",
    )


def _binding(obj: Object) -> Binding:
    spec = obj["spec"]
    match = spec.get("matchResources")
    return Binding(
        name=name_of(obj),
        policy=spec["policyName"],
        matching=ANYTHING if match is None else _binding_matching(match),
        param_ref=spec.get("paramRef"),
        actions=frozenset(spec["validationActions"]),
    )


def _binding_matching(match: Object) -> Matching:
    """Without rules of its own a binding narrows by its selectors alone."""
    found = matching_of(match, "resourceRules")
    if found.rules:
        return found
    return Matching(ANYTHING.rules, found.excluded, found.equivalent, found.namespaces, found.objects)

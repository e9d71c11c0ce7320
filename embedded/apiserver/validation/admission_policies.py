"""ValidatingAdmissionPolicies and their bindings as they are written: their defaults and what is wrong with them.

Messages are those of kubernetes `pkg/apis/admissionregistration/validation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object, name_of
from embedded.apiserver.cel.expressions import CompileError
from embedded.apiserver.cel.match_conditions import condition_errors
from embedded.apiserver.cel.variables import Compiler
from embedded.apiserver.validation.admission_webhooks import rule_errors, selector_errors

_FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_ACTIONS = ("Audit", "Deny", "Warn")
_NOT_FOUND_ACTIONS = ("Deny", "Allow")
_MOST_ANNOTATIONS = 20
_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


def default_policy(policy: Object) -> None:
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _default_match(spec.get("matchConstraints"))


def default_policy_binding(binding: Object) -> None:
    _default_match((binding.get("spec") or {}).get("matchResources"))


def _default_match(match: Object | None) -> None:
    if match is None:
        return
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (*(match.get("resourceRules") or ()), *(match.get("excludeResourceRules") or ())):
        rule.setdefault("scope", "*")


# -- policies -------------------------------------------------------------------------------------------------


def policy_errors(policy: Object) -> Iterator[FieldError]:
    """Every field error of a policy with its defaults in place; its expressions are compiled."""
    spec = policy.get("spec") or {}
    if (failure := spec.get("failurePolicy")) not in _FAILURE_POLICIES:
        yield not_supported("spec.failurePolicy", failure, _FAILURE_POLICIES)
    if (kind := spec.get("paramKind")) is not None:
        yield from _kind_errors("spec.paramKind", kind)
    if (match := spec.get("matchConstraints")) is None:
        yield required("spec.matchConstraints")
    else:
        yield from _match_errors("spec.matchConstraints", match)
        if not match.get("resourceRules"):
            yield required("spec.matchConstraints.resourceRules")
    yield from condition_errors("spec.matchConditions", spec.get("matchConditions") or (), kind is not None)
    yield from _expression_errors(name_of(policy), spec, Compiler(kind is not None))


def _kind_errors(path: str, kind: Object) -> Iterator[FieldError]:
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    group, _, last = version.rpartition("/")
    if not version:
        yield required(f"{path}.apiVersion")
    else:
        if group:
            yield from names.dns_subdomain(f"{path}.apiVersion", group)
        yield from names.dns_1035_label(f"{path}.apiVersion", last)
    if not name:
        yield required(f"{path}.kind")
    elif any(names.dns_1035_label(path, name.lower())):
        detail = f"may have mixed case, but should otherwise match: {names.DNS_1035_RULE}"
        yield bad_value(f"{path}.kind", name, detail)


def _match_errors(path: str, match: Object) -> Iterator[FieldError]:
    if match["matchPolicy"] not in _MATCH_POLICIES:
        yield not_supported(f"{path}.matchPolicy", match["matchPolicy"], _MATCH_POLICIES)
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(f"{path}.{key}", match[key])
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(key) or ()):
            yield from _repeated(f"{path}.{key}[{index}].resourceNames", rule.get("resourceNames") or ())
            yield from rule_errors(f"{path}.{key}[{index}]", rule)


def _repeated(path: str, values: Sequence[str]) -> Iterator[FieldError]:
    for index, value in enumerate(values):
        if value in values[:index]:
            yield duplicate(f"{path}[{index}]", value)


def _expression_errors(name: str, spec: Object, compiler: Compiler) -> Iterator[FieldError]:
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    for index, variable in enumerate(spec.get("variables") or ()):
        yield from _variable_errors(f"spec.variables[{index}]", variable, compiler)
    if not validations and not annotations:
        for key in ("validations", "auditAnnotations"):
            yield required(f"spec.{key}", "validations or auditAnnotations must contain at least one item")
    for index, validation in enumerate(validations):
        yield from _validation_errors(f"spec.validations[{index}]", validation, compiler)
    if len(annotations) > _MOST_ANNOTATIONS:
        detail = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield bad_value("spec.auditAnnotations", annotations, detail)
    keys = [annotation.get("key") or "" for annotation in annotations]
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        yield from names.qualified_name(f"{path}.key", f"{name}/{keys[index]}")
        yield from _value_errors(f"{path}.valueExpression", annotation.get("valueExpression") or "", compiler)
        if keys[index] in keys[:index]:
            yield duplicate(f"{path}.key", keys[index])


def _variable_errors(path: str, variable: Object, compiler: Compiler) -> Iterator[FieldError]:
    name, text = variable.get("name") or "", variable.get("expression") or ""
    if not name.strip():
        yield required(f"{path}.name", "name is not specified")
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        yield bad_value(f"{path}.name", name, "name is not a valid CEL identifier")
    if not text.strip():
        yield required(f"{path}.expression", "expression is not specified")
        return
    try:
        compiler.add(name, text)
    except CompileError as error:
        yield bad_value(f"{path}.expression", text, str(error))


def _validation_errors(path: str, validation: Object, compiler: Compiler) -> Iterator[FieldError]:
    text, told = validation.get("expression") or "", validation.get("messageExpression") or ""
    message, reason = validation.get("message") or "", validation.get("reason")
    if not text.strip():
        yield required(f"{path}.expression", "expression is not specified")
    else:
        yield from _compile_errors(f"{path}.expression", text, compiler, ("bool",))
    if told and not told.strip():
        yield bad_value(f"{path}.messageExpression", told, "must be non-empty if specified")
    elif told:
        yield from _compile_errors(f"{path}.messageExpression", told, compiler, ("string",), authorizer=False)
    if message and not message.strip():
        yield bad_value(f"{path}.message", message, "message must be non-empty if specified")
    elif "\n" in message.strip() or "\r" in message.strip():
        yield bad_value(f"{path}.message", message, "message must not contain line breaks")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)


def _value_errors(path: str, text: str, compiler: Compiler) -> Iterator[FieldError]:
    if not text.strip():
        yield required(path, "valueExpression is not specified")
    else:
        yield from _compile_errors(path, text, compiler, ("string", "null_type"))


def _compile_errors(
    path: str, text: str, compiler: Compiler, wanted: Sequence[str], authorizer: bool = True
) -> Iterator[FieldError]:
    try:
        compiler.compile(text, wanted, authorizer)
    except CompileError as error:
        yield bad_value(path, text, str(error))


# -- bindings -------------------------------------------------------------------------------------------------


def policy_binding_errors(binding: Object) -> Iterator[FieldError]:
    """Every field error of a binding with its defaults in place."""
    spec = binding.get("spec") or {}
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from names.dns_subdomain("spec.policyName", spec["policyName"])
    if (ref := spec.get("paramRef")) is not None:
        yield from _ref_errors("spec.paramRef", ref)
    if (match := spec.get("matchResources")) is not None:
        yield from _match_errors("spec.matchResouces", match)  # spelt as upstream spells it
    yield from _action_errors("spec.validationActions", spec.get("validationActions") or [])


def _ref_errors(path: str, ref: Object) -> Iterator[FieldError]:
    name, selector = ref.get("name"), ref.get("selector")
    if name and selector is not None:
        for key in ("name", "selector"):
            yield not_allowed(f"{path}.{key}", "name and selector are mutually exclusive")
    if selector is not None:
        yield from selector_errors(f"{path}.selector", selector)
    if name:
        yield from names.path_segment(f"{path}.name", name)
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    action = ref.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    elif action not in _NOT_FOUND_ACTIONS:
        yield not_supported(f"{path}.parameterNotFoundAction", action, _NOT_FOUND_ACTIONS)


def _action_errors(path: str, actions: Sequence[str]) -> Iterator[FieldError]:
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield not_supported(f"{path}[{index}]", action, _ACTIONS)
    yield from _repeated(path, actions)
    if {"Deny", "Warn"} <= set(actions):
        detail = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        yield bad_value(path, actions, detail)
    if not actions:
        yield required(path, "at least one validation action is required")

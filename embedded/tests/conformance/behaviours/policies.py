"""ValidatingAdmissionPolicies, which a cluster may heed only a moment after they are there."""

from __future__ import annotations

from typing import Any

from embedded.tests.conformance import pages
from embedded.tests.conformance import resources as r
from embedded.tests.conformance.behaviour import Via, behaviour
from embedded.tests.conformance.case import Case
from embedded.tests.conformance.resources import CONFIG_MAPS, POLICIES, POLICY_BINDINGS, Object, config_map

_PROBE = {"expression": "object.metadata.name != 'probe'", "message": "in force"}
_SIZE = {"name": "size", "expression": "object.data.size()"}


def _enforced(t: Case, *validations: Object, binding: Object | None = None, **spec: Any) -> str:
    """A policy in the case's namespace, once it is heeded; its name."""
    name = t.unique("policy")
    t.given(POLICIES, r.policy(name, _PROBE, *validations, **spec))
    t.given(POLICY_BINDINGS, r.policy_binding(name, t.ns, **(binding or {})))
    path, probe = CONFIG_MAPS.path(t.ns), config_map("probe")

    def in_force() -> bool:
        answer = t.raw.answer("POST", path, body=probe, query={"dryRun": "All"})
        return b"in force" in answer.body or "in force" in str(answer.headers)

    t.eventually(in_force, "the policy")
    return name


@behaviour(pages.POLICIES)
def a_policy_denies_in_its_words(t: Case) -> None:
    name = _enforced(t, {"expression": "object.data.key != 'value'", "message": "not this one"})
    denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: not this one"
    with t.refused("Invalid", denied):
        t.create(CONFIG_MAPS, config_map("m"))
    assert not t.exists(CONFIG_MAPS, "m")


@behaviour(pages.POLICIES, Via.CODE)
def a_policy_denies_for_its_reason(t: Case) -> None:
    _enforced(t, {"expression": "object.data.key != 'value'", "reason": "Forbidden"})
    with t.refused("Forbidden", "denied request: failed expression: object.data.key != 'value'"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICY_EXPRESSIONS, Via.CODE)
def a_policy_compares_an_object_with_what_it_was(t: Case) -> None:
    _enforced(t, {"expression": "oldObject == null || object.data == oldObject.data", "message": "data stays"})
    t.create(CONFIG_MAPS, config_map("m"))
    t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"labels": {"a": "b"}}})
    with t.refused("Invalid", "data stays"):
        t.patch(CONFIG_MAPS, "m", "merge", {"data": {"key": "other"}})


@behaviour(pages.POLICY_EXPRESSIONS, Via.CODE)
def a_policy_sees_the_namespace(t: Case) -> None:
    _enforced(t, {"expression": f"namespaceObject.metadata.name != '{t.ns}'", "message": "here"})
    with t.refused("Invalid", "denied request: here"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICY_VARIABLES, Via.CODE)
def a_policy_has_variables(t: Case) -> None:
    told = {"expression": "variables.size < 1", "messageExpression": "'there are %d'.format([variables.size])"}
    _enforced(t, told, variables=[_SIZE])
    with t.refused("Invalid", "denied request: there are 1"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICY_FAILURES, Via.CODE)
def an_expression_without_a_value_denies(t: Case) -> None:
    _enforced(t, {"expression": "object.nope == 1"})
    with t.refused("Invalid", "expression 'object.nope == 1' resulted in error: no such key: nope"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICY_FAILURES, Via.CODE)
def an_expression_without_a_value_may_be_ignored(t: Case) -> None:
    _enforced(t, {"expression": "object.nope == 1"}, failurePolicy="Ignore")
    t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICY_CONDITIONS, Via.CODE)
def a_policy_is_asked_when_its_conditions_hold(t: Case) -> None:
    conditions = [{"name": "labelled", "expression": "has(object.metadata.labels) || object.metadata.name == 'probe'"}]
    _enforced(t, {"expression": "false"}, matchConditions=conditions)
    t.create(CONFIG_MAPS, config_map("m"))
    with t.refused("Invalid", "failed expression: false"):
        t.patch(CONFIG_MAPS, "m", "merge", {"metadata": {"labels": {"a": "b"}}})


@behaviour(pages.POLICY_ACTIONS, Via.RAW | Via.KUBECTL)
def a_binding_may_only_warn(t: Case) -> None:
    name = _enforced(t, {"expression": "false", "message": "no"}, binding={"validationActions": ["Warn"]})
    told = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': no"
    if t.by_raw:
        assert told in t.raw.answer("POST", t.path(CONFIG_MAPS), body=config_map("m")).headers["Warning"]
    else:
        assert f"Warning: {told}" in t.kubectl("create", "configmap", "m").err


@behaviour(pages.POLICY_PARAMETERS, Via.CODE)
def a_policy_looks_at_its_parameters(t: Case) -> None:
    widgets = t.custom({"type": "object", "properties": {"most": {"type": "integer"}}})
    t.given(widgets, widgets.object("limits", spec={"most": 0}))
    validation = {"expression": "object.data.size() <= params.spec.most", "message": "over the limit"}
    ref = {"name": "limits", "parameterNotFoundAction": "Deny"}
    kind = {"apiVersion": widgets.api_version, "kind": widgets.kind}
    _enforced(t, validation, paramKind=kind, binding={"paramRef": ref})
    with t.refused("Invalid", "over the limit"):
        t.create(CONFIG_MAPS, config_map("m"))


@behaviour(pages.POLICIES, Via.RAW | Via.KUBECTL, Via.RAW)
def the_expressions_of_a_policy_must_compile(t: Case) -> None:
    with t.refused("Invalid", "spec.validations[0].expression", "undeclared reference to 'objekt'"):
        t.create(POLICIES, r.policy(t.unique("bad"), {"expression": "objekt == 1"}))


@behaviour(pages.POLICIES, Via.CODE)
def an_expression_of_a_policy_is_true_or_false(t: Case) -> None:
    with t.refused("Invalid", "spec.validations[0].expression", "must evaluate to bool"):
        t.create(POLICIES, r.policy(t.unique("bad"), {"expression": "'yes'"}))

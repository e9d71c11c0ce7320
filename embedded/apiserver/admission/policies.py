"""ValidatingAdmissionPolicies at work: which stored ones a write concerns, and what they make of it.

https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
Source of order and messages: kubernetes `apiserver/pkg/admission/plugin/policy/validating`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from embedded.apiserver.admission import operations
from embedded.apiserver.admission.context import labels_of_namespace, namespace_of_operation, served_versions
from embedded.apiserver.admission.policy_source import Binding, Misconfigured, Policy, PolicySource, Validation
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import VALIDATING_POLICIES, ResourceType
from embedded.apiserver.apimachinery.status import StatusError, forbidden
from embedded.apiserver.cel.admission_variables import AdmissionVariables
from embedded.apiserver.cel.authorizer import AuthorizerContext
from embedded.apiserver.cel.expressions import EvaluationError, Program
from embedded.apiserver.cel.match_conditions import hold
from embedded.apiserver.registry.resources import DeleteOptions, Draft, Resources
from embedded.apiserver.request.attributes import Authorizer
from embedded.apiserver.request.operation import Operation

_CODES = {"Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE_BYTES = 5 * 1024  # of a message that an expression makes


@dataclass(frozen=True, slots=True)
class _Denial:
    """Why one policy refuses; without a binding it is the policy itself that is wrong."""

    policy: Policy
    binding: Binding | None
    message: str
    reason: str = "Invalid"

    def __str__(self) -> str:
        bound = f" with binding '{self.binding.name}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy.name}'{bound} denied request: {self.message}"


@dataclass(frozen=True, slots=True)
class _Case:
    """One policy looking at one write with one set of parameters."""

    policy: Policy
    facts: AdmissionVariables
    shown_as: ResourceType
    params: Object | None


class Policies:
    """The stored policies at work; implements `admitted_writes.AdmissionHooks`."""

    def __init__(self, resources: Resources, authorizer: Authorizer) -> None:
        self._resources = resources
        self._authorizer = authorizer
        self._configured = PolicySource(resources)

    def concern(self, rtype: ResourceType, namespace: str, subresource: str) -> bool:
        # A policy that refused these could not be removed again.
        if rtype.group == VALIDATING_POLICIES.group:
            return False
        bound = self._configured.bound()
        if not bound:
            return False
        versions = served_versions(self._resources, rtype)
        return any(policy.matching.covers(versions, subresource) for policy, _ in bound)

    async def mutate(self, draft: Draft) -> None:
        """Policies of this kind change nothing."""

    async def validate(self, draft: Draft) -> None:
        self._judge(operations.write(draft), draft.options.warnings)

    async def validate_deletion(self, rtype: ResourceType, old: Object, options: DeleteOptions) -> None:
        self._judge(operations.deletion(rtype, old, options), options.warnings)

    async def validate_connection(self, operation: Operation, warnings: list[str]) -> None:
        self._judge(operation, warnings)

    def _judge(self, operation: Operation, warnings: list[str]) -> None:
        """Every policy is heard; of several denials the first is told."""
        denials = list(self._denials(operation, warnings))
        if denials:
            raise _refusal(operation, denials[0])

    def _denials(self, operation: Operation, warnings: list[str]) -> Iterator[_Denial]:
        bound = self._configured.bound()
        if not bound:
            return
        labels = labels_of_namespace(self._resources, operation)
        versions = served_versions(self._resources, operation.rtype)
        asking = AuthorizerContext(operation.user, self._authorizer)
        facts = AdmissionVariables(operation, namespace_of_operation(self._resources, operation), asking)
        for policy, bindings in bound:
            shown_as = policy.matching.wanted_as(operation, versions, labels)
            if shown_as is None:
                continue
            for binding in bindings:
                if binding.matching.wanted_as(operation, versions, labels) is not None:
                    yield from self._denials_of(policy, binding, (facts, shown_as), warnings)

    def _denials_of(
        self, policy: Policy, binding: Binding, shown: tuple[AdmissionVariables, ResourceType], warnings: list[str]
    ) -> Iterator[_Denial]:
        facts, shown_as = shown
        try:
            params = self._configured.params(policy, binding, facts.operation)
        except Misconfigured as error:
            if policy.fails:
                what = "binding" if error.of_binding else "policy"
                yield _Denial(policy, binding if error.of_binding else None, f"failed to configure {what}: {error}")
            return
        for each in params:
            for message, reason in _verdicts(_Case(policy, facts, shown_as, each)):
                if "Warn" in binding.actions:
                    warnings.append(
                        f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding "
                        f"'{binding.name}': {message}"
                    )
                if "Deny" in binding.actions:
                    yield _Denial(policy, binding, message, reason)


def _verdicts(case: _Case) -> Iterator[tuple[str, str]]:
    """(message, reason) of everything the policy holds against the write."""
    policy = case.policy
    try:
        if not hold(policy.conditions, case.facts, case.shown_as, case.params):
            return
    except EvaluationError as error:
        if policy.fails:
            yield str(error), "Invalid"
        return
    for validation in policy.validations:
        try:
            if case.facts.value(validation.program, case.shown_as, case.params) is not True:
                yield _message(validation, case), validation.reason
        except EvaluationError as error:
            if policy.fails:
                yield str(error), "Invalid"
    for annotation in policy.annotations:
        try:
            case.facts.value(annotation, case.shown_as, case.params)
        except EvaluationError as error:
            if policy.fails:
                yield str(error), "Invalid"


def _message(validation: Validation, case: _Case) -> str:
    made = "" if validation.told is None else _made_message(validation.told, case)
    return made or validation.message.strip() or f"failed expression: {validation.program.text.strip()}"


def _made_message(told: Program, case: _Case) -> str:
    """Empty where the expression has no value, or one that is no line of text."""
    try:
        found = case.facts.value(told, case.shown_as, case.params)
    except EvaluationError:
        return ""
    text = found.strip() if isinstance(found, str) else ""
    return "" if "\n" in text or len(text.encode()) > _LONGEST_MESSAGE_BYTES else text


def _refusal(operation: Operation, denial: _Denial) -> StatusError:
    """A refusal as of any admission, but with the reason that the policy gives."""
    text = str(denial)
    found = forbidden(operation.rtype, operation.name, text, [{"message": text}])
    found.reason, found.code = denial.reason, _CODES[denial.reason]
    return found

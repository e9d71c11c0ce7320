"""Label and field selectors: grammar, errors and matching."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from local.apiserver.objects import Object
from local.apiserver.registry import ResourceType
from local.apiserver.status import StatusError, bad_request

_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_SET_TERM = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_COMPARISON = re.compile(r"^(?P<key>[^=!<>\s]+)\s*(?P<operator>==|!=|=|>|<)\s*(?P<value>\S*)$")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One term: key, operator and the values it compares with."""

    key: str
    operator: str  # in, notin, exists, absent, gt, lt
    values: frozenset[str] = frozenset()

    def admits(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value in self.values
            case "notin":
                return value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
        return _compares(value, self.operator, next(iter(self.values)))


def _compares(value: str | None, operator: str, bound: str) -> bool:
    try:
        number, limit = int(value or ""), int(bound)
    except ValueError:
        return False
    return number > limit if operator == "gt" else number < limit


Selector = tuple[Requirement, ...]


def parse_labels(text: str) -> Selector:
    """A label selector such as `a=b,c in (d,e),!f`; raises 400 on a malformed one."""
    return tuple(_label_term(term) for term in _split(text))


def _split(text: str) -> list[str]:
    """Terms at top-level commas: those inside parentheses separate values."""
    if not text.strip():
        return []
    terms, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            terms.append(text[start:index].strip())
            start = index + 1
    return [*terms, text[start:].strip()]


def _label_term(term: str) -> Requirement:
    if term.startswith("!"):
        return _checked(Requirement(term[1:].strip(), "absent"))
    if found := _SET_TERM.match(term):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return _checked(Requirement(found["key"], found["operator"], values))
    if found := _COMPARISON.match(term):
        operator = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}[found["operator"]]
        return _checked(Requirement(found["key"], operator, frozenset((found["value"],))))
    return _checked(Requirement(term, "exists"))


def _checked(requirement: Requirement) -> Requirement:
    if not _KEY.match(requirement.key) or not all(_VALUE.match(value) for value in requirement.values):
        raise bad_request(f"unable to parse requirement: {requirement.key!r} is not a valid label selector term")
    return requirement


def parse_fields(text: str, rtype: ResourceType) -> Selector:
    """A field selector such as `spec.nodeName=a,status.phase!=Failed`; raises 400 on an unsupported field."""
    return tuple(_field_term(term, rtype) for term in _split(text))


def _field_term(term: str, rtype: ResourceType) -> Requirement:
    found = re.match(r"^(?P<key>[^=!]+)(?P<operator>==|!=|=)(?P<value>.*)$", term)
    if found is None:
        raise bad_request(f"invalid field selector: {term!r}; can't understand it")
    if found["key"] not in ("metadata.name", "metadata.namespace", *rtype.fields):
        raise bad_request(f"field label not supported: {found['key']}")
    return Requirement(
        found["key"], "notin" if found["operator"] == "!=" else "in", frozenset((_unescaped(found["value"]),))
    )


def _unescaped(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)


def parse_label_selector(selector: Object | None) -> Selector | None:
    """A metav1.LabelSelector; None (not the empty selector, which matches all) when it is absent."""
    if selector is None:
        return None
    terms = [Requirement(key, "in", frozenset((value,))) for key, value in (selector.get("matchLabels") or {}).items()]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    for expression in selector.get("matchExpressions") or []:
        operator = operators.get(expression.get("operator"))
        if operator is None:
            raise StatusError(422, "Invalid", f"{expression.get('operator')!r} is not a valid label selector operator")
        terms.append(Requirement(expression["key"], operator, frozenset(expression.get("values") or ())))
    return tuple(terms)


def admits(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether every term holds."""
    return all(requirement.admits(labels) for requirement in selector)


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list or a watch asks for: a namespace (all when empty) and both selectors."""

    namespace: str = ""
    labels: Selector = ()
    fields: Selector = ()

    def admits(self, namespace: str, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        if self.namespace and namespace != self.namespace:
            return False
        return admits(self.fields, fields) and admits(self.labels, labels)

    def pinned(self, field: str) -> str | None:
        """The single value this filter demands of a field, when it does."""
        for requirement in self.fields:
            if requirement.key == field and requirement.operator == "in":
                return next(iter(requirement.values))
        return None


EVERYTHING = Filter()

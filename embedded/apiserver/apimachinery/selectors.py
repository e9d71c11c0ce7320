"""Label and field selectors: grammar, errors and matching."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import StatusError, bad_request

_KEY = re.compile(r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$")
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$")
_SET_TERM = re.compile(r"^(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)$")
_COMPARISON = re.compile(r"^(?P<key>[^=!<>\s]+)\s*(?P<operator>==|!=|=|>|<)\s*(?P<value>\S*)$")
# Terms between commas; a backslash takes the next character's meaning away.
_FIELD_TERM = re.compile(r"((?:\\.|[^,\\])+)")
_FIELD_COMPARISON = re.compile(r"^(?P<key>[^=!]+)(?P<operator>==|!=|=)(?P<value>(?:\\.|[^=\\])*)$")


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
    if requirement.operator in ("gt", "lt") and not all(map(_is_integer, requirement.values)):
        raise bad_request("unable to parse requirement: for 'Gt', 'Lt' operators, the value must be an integer")
    return requirement


def _is_integer(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None


def parse_fields(text: str, rtype: ResourceType) -> Selector:
    """A field selector such as `spec.nodeName=a,status.phase!=Failed`; raises 400 on an unsupported field."""
    return tuple(_field_term(term, rtype) for term in _FIELD_TERM.findall(text) if term)


def _field_term(term: str, rtype: ResourceType) -> Requirement:
    found = _FIELD_COMPARISON.match(term.strip())
    if found is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    operator = "notin" if found["operator"] == "!=" else "in"
    return Requirement(_indexed_label(found["key"], rtype), operator, frozenset((_unescaped(found["value"]),)))


def _indexed_label(label: str, rtype: ResourceType) -> str:
    """The label that objects of the type are indexed by; raises 400 in the words upstream has for it."""
    if label in ("metadata.name", "metadata.namespace"):
        return label
    if rtype.field_aliases and label in rtype.field_aliases:
        return rtype.field_aliases[label]
    if label in rtype.fields and not rtype.field_aliases:
        return label
    if rtype.fields or rtype.custom:
        raise bad_request(f"field label not supported: {label}")
    raise bad_request(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')


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

    @property
    def admits_namespace_only(self) -> bool:
        """Whether the namespace is all that counts."""
        return not (self.fields or self.labels)

    @property
    def admits_all(self) -> bool:
        return not (self.fields or self.labels or self.namespace)

    def pinned(self, field: str) -> str | None:
        """The single value this filter demands of a field, when it does."""
        for requirement in self.fields:
            if requirement.key == field and requirement.operator == "in":
                return next(iter(requirement.values))
        return None


EVERYTHING = Filter()

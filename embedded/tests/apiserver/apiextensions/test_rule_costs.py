"""What the rules of a definition may cost at most. The expected costs are what kube-apiserver 1.34.2 made of the same rules."""

import pytest

from embedded.apiserver.apiextensions.rule_compiling import budget_errors
from embedded.apiserver.cel.sizes import SizeBounds, extent_of

SHORT = {"type": "string", "maxLength": 50}
RULES = "x-kubernetes-validations"


def some(items, most=11):
    return {"type": "array", "maxItems": most, "items": items}


def thing(**properties):
    return {"type": "object", "properties": properties}


ITEM = thing(
    s=SHORT,
    t=SHORT,
    xs=some(SHORT),
    os=some(thing(k=SHORT)),
    m={"type": "object", "maxProperties": 11, "additionalProperties": SHORT},
    n={"type": "integer"},
    ns=some({"type": "integer"}),
    e={"type": "string", "enum": ["long", "x"]},
    at={"type": "string", "format": "date-time"},
    d={"type": "string", "format": "duration"},
    b={"type": "string", "format": "byte", "maxLength": 50},
    either={"x-kubernetes-int-or-string": True, "maxLength": 10},
    nested=some(some(thing(k=SHORT))),
)
COSTS = {
    "self.n > 3": 3,
    "self.s == self.t": 24,
    "has(self.s) != has(self.t)": 3,
    "self.s.contains(self.t)": 404,
    "self.s.startsWith(self.t)": 24,
    "self.s.matches('^[a-z]+$')": 44,
    "self.s.size() < 8 && self.s + self.t == 'ab'": 49,
    "self.xs.all(x, self.xs.exists(y, x == y))": 3215,
    "self.os.all(x, self.os.exists_one(y, x.k == y.k))": 3226,
    "self.s.split(',').all(x, self.t.split(',', 4).exists(y, y == x))": 14043,
    "self.s.replace('a', 'bb').replace('b', 'ccc').matches('[a-z]+')": 364,
    "self.m.all(k, k.matches('abc') && self.m[k].matches('abc'))": 333,
    "self.xs.all(x, isIP(x) && ip(x).family() == 4 && cidr('10.0.0.0/8').containsIP(x))": 806,
    "self.xs.all(x, quantity(x).isLessThan(quantity('10')) && quantity(x) == quantity('1'))": 542,
    "sets.contains(self.xs, ['a', 'b']) && sets.equivalent(self.xs, self.xs)": 282,
    "self.ns.sum() < 3 && self.ns.min() > 2 && self.xs.isSorted() && self.ns.map(x, x * 2).max() < 100": 440,
    "(has(self.xs) ? self.xs : ['a', 'b']).all(x, x == 'a') && (self.xs + self.xs).exists(x, x.contains('b'))": 172,
    "self.e.matches('aa') && timestamp('2020-01-01T00:00:00Z') < self.at && self.d > duration('1s')": 11,
    "type(self.either) == int ? self.either > 3 : self.either.matches('[0-9]+%')": 16,
    "self.s.find('[0-9]+') == '3' && self.s.findAll('[0-9]+', 3).all(x, x == 'a')": 890,
    "self.nested.all(x, x.all(y, y.k == 'b'))": 784,
    "{'a': self.s, 'b': 'c'}.all(k, {'a': self.s, 'b': 'c'}[k].matches('a')) && [self.s, 'b'].all(x, x == 'a')": 170,
    "string(self.n) == '3' && bytes(self.s) == self.b && string(self.b).startsWith('a') && 'a%s'.format([self.s]) == 'b'": 55,
    "self.s.trim().upperAscii().substring(1, 3) == 'a' && self.s.indexOf('a') == 3 && dyn(self.s) == 'a'": 90,
    "self.s < self.t && self.s in self.xs && self.xs[0] != self.s": 64,
    "self.s.contains(oldSelf.s)": 404,
}
ENDLESS = (
    "self.xs.filter(x, x.size() > 2).map(x, x + 'a').join(',').lowerAscii().matches('a')",
    "url(self.s).getHost().matches('a+')",
    "self.?s.orValue('x') == 'x' && self.m[?'k'].orValue('y').matches('a') && optional.of(self.s).hasValue()",
)
BUDGET = 10_000_000


def schema(rule, most):
    """A map, so that what was is known again, with so many values the rule is held against."""
    values = {**ITEM, RULES: [{"rule": rule}]}
    return thing(xs={"type": "object", "maxProperties": most, "additionalProperties": values})


def told(rule, most):
    return [error.message for error in budget_errors("s", schema(rule, most))]


@pytest.mark.parametrize(("rule", "cost"), COSTS.items(), ids=COSTS)
def test_a_rule_costs_what_kubernetes_says(rule, cost):
    """As many values as the budget allows, and not one more."""
    most = BUDGET // cost
    assert told(rule, most) == []
    assert "estimated rule cost exceeds budget by factor of 1.0" in told(rule, most + 1)[0]


@pytest.mark.parametrize("rule", ENDLESS)
def test_what_has_no_bound_costs_too_much(rule):
    """However few values it is held against."""
    assert "estimated rule cost exceeds budget by factor of more than 100x" in told(rule, 1)[0]


def test_the_rules_of_one_schema_have_a_budget_together():
    """Those that cost most are named."""
    rule = {RULES: [{"rule": "self.matches('^[a-z]+$')"}]}
    properties = {f"p{number}": {**SHORT, **rule} for number in range(40)}
    many = thing(xs=some(thing(**properties), most=200_000))
    messages = [error.message for error in budget_errors("s", many)]
    contributed = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    assert sum(contributed in message for message in messages) == 4
    whole = (
        "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of "
    )
    assert [whole in message for message in messages] == [False] * 4 + [True]


def test_a_message_is_made_once():
    """Its cost counts, but not once for every value."""
    quoted = {"rule": "self.n > 3", "messageExpression": "self.xs.map(x, x + self.s).join(',').replace('', self.s)"}
    one = {**ITEM, RULES: [{**quoted, "messageExpression": "self.s + self.t"}]}
    assert budget_errors("s", thing(xs=some(one, most=1_000_000))) == []
    unbounded = thing(s={"type": "string"}, xs={"type": "array", "items": {"type": "string"}}, n={"type": "integer"})
    (first, *_) = budget_errors("s", {**unbounded, RULES: [quoted]})
    assert first.field == f"s.{RULES}[0].messageExpression"
    assert "estimated messageExpression cost exceeds budget" in first.message


def test_an_earlier_value_that_may_be_absent_costs_no_more():
    """`optionalOldSelf` is no part of the expression."""
    rule = {"rule": "!oldSelf.hasValue() || oldSelf.value().s == self.s", "optionalOldSelf": True}
    assert budget_errors("s", {**ITEM, RULES: [rule]}) == []


SIZES = {
    "a text": ({"type": "string"}, SizeBounds(3 * 1024 * 1024 - 2, 2)),
    "a short text": ({"type": "string", "maxLength": 5}, SizeBounds(20, 2)),
    "one of some texts": ({"type": "string", "enum": ["a", "long"]}, SizeBounds(4, 2)),
    "a number": ({"type": "integer"}, SizeBounds(0, 1)),
    "a time": ({"type": "string", "format": "date-time"}, SizeBounds(32, 21)),
    "a duration": ({"type": "string", "format": "duration", "maxLength": 3}, SizeBounds(32, 3)),
    "bytes": ({"type": "string", "format": "byte", "maxLength": 5}, SizeBounds(5, 2)),
    "a list": (some({"type": "integer"}, 7), SizeBounds(7, 2, items=SizeBounds(0, 1))),
    "a list without end": (
        {"type": "array", "items": {"type": "boolean"}},
        SizeBounds((3 * 1024 * 1024 - 2) // 5, 2, items=SizeBounds(0, 4)),
    ),
    "what must be there": (
        {"type": "object", "required": ["ab"], "properties": {"ab": {"type": "integer"}}},
        SizeBounds(0, 9, fields={"ab": SizeBounds(0, 1)}),
    ),
    "anything": ({"x-kubernetes-preserve-unknown-fields": True}, None),
}


@pytest.mark.parametrize(("schema", "extent"), SIZES.values(), ids=SIZES)
def test_the_sizes_of_values(schema, extent):
    """From a schema alone."""
    assert extent_of(schema) == extent

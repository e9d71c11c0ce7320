"""Expressions: what the functions that Kubernetes adds compute, and how errors are told."""

import pytest

from embedded.apiserver.cel import expressions
from embedded.apiserver.cel.expressions import CompileError, Environment, EvaluationError, shown, type_of

LOOSE = Environment(
    {"object": expressions.DYN, "request": type_of("AdmissionRequest"), "namespaceObject": type_of("Namespace")}
)
OBJECT = {"list": [3, 1, 2], "size": "1Gi", "ip": "10.1.2.3", "name": "a-b", "empty": [], "n": 5, "none": None}


def value(text):
    return LOOSE.compile(text).value(LOOSE.activation({"object": OBJECT}))


VALUES = {
    "quantities compare": ("quantity('1Gi').isGreaterThan(quantity('500Mi'))", True),
    "quantities are less": ("quantity('999m').isLessThan(quantity('1'))", True),
    "quantities are values": ("quantity('1') == quantity('1000m')", True),
    "a quantity of the object": ("quantity(object.size).compareTo(quantity('1024Mi'))", 0),
    "quantities add": ("quantity('1').add(quantity('500m')).compareTo(quantity('1500m'))", 0),
    "a quantity and a number": ("quantity('1k').sub(1).asInteger()", 999),
    "a fraction": ("quantity('500m').isInteger()", False),
    "an approximate quantity": ("quantity('500m').asApproximateFloat()", 0.5),
    "sign": ("sign(quantity('-1'))", -1),
    "no quantity": ("isQuantity('1Zi')", False),
    "versions compare": ("semver('1.2.3').isLessThan(semver('1.10.0'))", True),
    "a prerelease comes first": ("semver('1.0.0-rc.2').compareTo(semver('1.0.0'))", -1),
    "prereleases by number": ("semver('1.0.0-rc.10').isGreaterThan(semver('1.0.0-rc.9'))", True),
    "parts of a version": ("semver('4.5.6').minor()", 5),
    "no version": ("isSemver('v1.0')", False),
    "an address in a network": ("cidr('10.0.0.0/8').containsIP(object.ip)", True),
    "an address out of it": ("cidr('10.0.0.0/16').containsIP(ip(object.ip))", False),
    "a network in a network": ("cidr('10.0.0.0/8').containsCIDR('10.128.0.0/9')", True),
    "networks of two families": ("cidr('10.0.0.0/8').containsCIDR('fd00::/64')", False),
    "a masked network": ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
    "the address of a network": ("cidr('10.1.2.3/8').ip() == ip('10.1.2.3')", True),
    "prefix length": ("cidr('10.1.2.3/8').prefixLength()", 8),
    "family": ("ip('::1').family()", 6),
    "loopback": ("ip('127.0.0.1').isLoopback()", True),
    "no address": ("isIP('1.2.3')", False),
    "mapped addresses are none": ("isIP('::ffff:1.2.3.4')", False),
    "canonical": ("ip.isCanonical('0::1')", False),
    "url": ("url('https://a.b:80/c?d=e').getHost()", "a.b:80"),
    "query": ("url('https://a.b:80/c?d=e').getQuery()['d'][0]", "e"),
    "no url": ("isURL('../a')", False),
    "find": ("'abc 123'.find('[0-9]+')", "123"),
    "find all": ("'1a22b333'.findAll('[0-9]+', 2)", ["1", "22"]),
    "matches is RE2": ("object.name.matches('^[a-z](-[a-z])*$')", True),
    "sum": ("object.list.sum()", 6),
    "sum of none": ("object.empty.sum()", 0),
    "min and max": ("object.list.max() - object.list.min()", 2),
    "sorted": ("object.list.isSorted()", False),
    "sets": ("sets.contains(object.list, [1, 2]) && !sets.equivalent(object.list, [1])", True),
    "sets intersect": ("sets.intersects([1], [[2]])", False),
    "optional fields": ("object.?nope.?x.orValue('default')", "default"),
    "strings": ("object.name.split('-').join('+').upperAscii()", "A+B"),
    "format": ("'%s has %d'.format([object.name, object.n])", "a-b has 5"),
    "numbers of two kinds": ("object.n == 5.0", True),
    "null": ("object.none == null", True),
    "an error that does not matter": ("object.nope == 1 || true", True),
}


@pytest.mark.parametrize(("text", "found"), VALUES.values(), ids=VALUES)
def test_an_expression_has_its_value(text, found):
    """https://kubernetes.io/docs/reference/using-api/cel/"""
    assert value(text) == found


FAULTY_VALUES = {
    "no such field": ("object.nope == 1", "no such key: nope"),
    "index": ("object.list[7] == 1", "index out of bounds: 7"),
    "types": ("object.name + object.n == ''", "no such overload"),
    "field of a text": ("object.name.nope == 1", "no such overload"),
    "division": ("object.n / 0 == 1", "division by zero"),
    "overflow": ("object.n + 9223372036854775807 == 1", "integer overflow"),
    "quantity": ("quantity('much') == quantity('1')", "quantities must match the regular expression"),
    "min of none": ("object.empty.min() == 1", "min called on empty list"),
    "too many steps": (f"[{'1,' * 200}1].all(a, [{'1,' * 200}1].all(b, a == b))", "actual cost limit exceeded"),
}


@pytest.mark.parametrize(("text", "why"), FAULTY_VALUES.values(), ids=FAULTY_VALUES)
def test_an_expression_without_a_value_says_why(text, why):
    """In the words of cel-go."""
    with pytest.raises(EvaluationError, match=why):
        value(text)


NO_EXPRESSIONS = {
    "syntax": ("1 +", "Syntax error"),
    "unknown name": ("nope", "ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')\n | nope\n | ^"),
    "field of an unknown name": ("nope.a.b", "undeclared reference to 'nope' (in container '')"),
    "unknown function": ("nope()", "undeclared reference to 'nope'"),
    "types": ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
    "field of the request": (
        "request.nope",
        "ERROR: <input>:1:8: undefined field 'nope'\n | request.nope\n | .......^",
    ),
    "field of the namespace": ("namespaceObject.metadata.ownerReferences", "undefined field 'ownerReferences'"),
    "a library that Kubernetes does not have": ("math.greatest(1, 2) > 1", "undeclared reference to 'greatest'"),
    "base64, which neither": ("base64.encode(b'a') == 'a'", "undeclared reference to 'encode'"),
    "bindings, which are for this server": ("cel.bind(x, 1, x > 0)", "undeclared reference to 'bind'"),
    "a function that is missing": ("format.dns1123Label().validate('a')", "undeclared reference to 'dns1123Label'"),
}


@pytest.mark.parametrize(("text", "why"), NO_EXPRESSIONS.values(), ids=NO_EXPRESSIONS)
def test_what_is_no_expression_says_where(text, why):
    """In the words of cel-go."""
    with pytest.raises(CompileError) as error:
        LOOSE.compile(text)
    assert why in str(error.value)


TYPES = {
    "1": "int",
    "'a' == 'b'": "bool",
    "['a']": "list(string)",
    "{'a': [1]}": "map(string, list(int))",
    "object.a": "dyn",
    "request.namespace": "string",
}


@pytest.mark.parametrize("text", TYPES)
def test_types_are_shown_as_in_go(text):
    """As they stand in messages."""
    assert shown(LOOSE.compile(text).type) == TYPES[text]

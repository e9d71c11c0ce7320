"""Roles made of others, as a pure function of all roles."""

import pytest

from embedded.apiserver.authorization.role_aggregation import combined
from embedded.tests.apiserver.secured import rule

PODS, NODES, JOBS = rule("get", "pods"), rule("get", "nodes"), rule("get", "jobs", "batch")


def role(name, *rules, **labels):
    return {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}


def gathering(*selectors, name="all", rules=()):
    return role(name, *rules) | {"aggregationRule": {"clusterRoleSelectors": list(selectors)}}


def matching(**labels):
    return {"matchLabels": labels}


OTHERS = [role("b", PODS, to="x"), role("a", NODES, PODS, to="x"), role("c", JOBS, to="y"), role("d", JOBS)]
GATHERED = {
    "in the order of names, each once": (gathering(matching(to="x")), [NODES, PODS]),
    "of several selectors": (gathering(matching(to="y"), matching(to="x")), [JOBS, NODES, PODS]),
    "everything": (gathering({}), [NODES, PODS, JOBS]),
    "of nobody": (gathering(matching(to="z")), []),
    "not of itself": (gathering({}, name="a"), [PODS, JOBS]),
    "not its own rules": (gathering(matching(to="y"), rules=[PODS]), [JOBS]),
    "none where it does not gather": (role("plain", PODS), None),
}


@pytest.mark.parametrize(("gathers", "rules"), GATHERED.values(), ids=GATHERED)
def test_rules_are_gathered(gathers, rules):
    """As upstream's clusterroleaggregation controller does."""
    assert combined(gathers, [gathers, *OTHERS]) == rules

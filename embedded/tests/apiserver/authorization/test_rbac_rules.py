"""One rule: what it allows, what it covers, how it is written."""

import pytest

from embedded.apiserver.authorization.rbac_rules import Rule, missing, rule_of
from embedded.apiserver.request.attributes import Attributes
from embedded.apiserver.request.user_info import UserInfo

ANNE = UserInfo("anne")


def rule(verbs="get", groups="", resources="pods", names="", urls=""):
    """Of words between spaces; the group `-` is the core group."""
    found = tuple("" if group == "-" else group for group in (groups or "-").split())
    return Rule(tuple(verbs.split()), found, tuple(resources.split()), tuple(names.split()), tuple(urls.split()))


def paths(urls, verbs="get"):
    return Rule(tuple(verbs.split()), urls=tuple(urls.split()))


def call(verb="get", group="", resource="pods", subresource="", name=""):
    return Attributes(ANNE, verb, group, "v1", resource, subresource, "shop", name)


def path(where, verb="get"):
    return Attributes(ANNE, verb, path=where)


ALLOWED = {
    "the same": (rule(), call(), True),
    "another verb": (rule(), call("list"), False),
    "one of several verbs": (rule("get list"), call("list"), True),
    "any verb": (rule("*"), call("deletecollection"), True),
    "another group": (rule(), call(group="metrics.k8s.io"), False),
    "any group": (rule(groups="*"), call(group="metrics.k8s.io"), True),
    "another resource": (rule(), call(resource="nodes"), False),
    "any resource": (rule(resources="*"), call(resource="nodes", subresource="status"), True),
    "not its sub-resource": (rule(), call(subresource="log"), False),
    "its sub-resource": (rule(resources="pods/log"), call(subresource="log"), True),
    "not the resource of a sub-resource": (rule(resources="pods/log"), call(), False),
    "a sub-resource of anything": (rule(resources="*/status"), call(resource="nodes", subresource="status"), True),
    "another sub-resource of anything": (rule(resources="*/status"), call(subresource="log"), False),
    "a star after the slash is no wildcard": (rule(resources="pods/*"), call(subresource="log"), False),
    "the object by its name": (rule(names="a b"), call(name="b"), True),
    "another object": (rule(names="a b"), call(name="c"), False),
    "no object where some are named": (rule("list", names="a"), call("list"), False),
    "a path": (paths("/healthz"), path("/healthz"), True),
    "another path": (paths("/healthz"), path("/metrics"), False),
    "a path that begins so": (paths("/healthz/*"), path("/healthz/ping"), True),
    "not the beginning itself": (paths("/healthz/*"), path("/healthz"), False),
    "any path": (paths("*"), path("/metrics"), True),
    "a path by another verb": (paths("*"), path("/metrics", "post"), False),
    "no path by a rule of resources": (rule("*", "*", "*"), path("/metrics"), False),
    "no resource by a rule of paths": (paths("*", "*"), call(), False),
}


@pytest.mark.parametrize(("held", "wanted", "allowed"), ALLOWED.values(), ids=ALLOWED)
def test_a_rule_allows(held, wanted, allowed):
    """As pkg/apis/rbac/v1/evaluation_helpers.go has it."""
    assert held.allows(wanted) is allowed


LACKING = {
    "nothing": ([rule("*", "*", "*")], [rule("get list", "apps", "deployments")], []),
    "put together from several": ([rule("get"), rule("list")], [rule("get list")], []),
    "one verb": ([rule("get")], [rule("get list")], ['{APIGroups:[""], Resources:["pods"], Verbs:["list"]}']),
    "verbs of one resource together": (
        [],
        [rule("get list", "-", "pods nodes")],
        [
            '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}',
            '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}',
        ],
    ),
    "all objects for who has one": (
        [rule(names="a")],
        [rule()],
        ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'],
    ),
    "one object for who has all": ([rule()], [rule(names="a")], []),
    "another object": (
        [rule(names="a")],
        [rule(names="a b")],
        ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'],
    ),
    "a sub-resource for who has it of anything": ([rule(resources="*/status")], [rule(resources="pods/status")], []),
    "everything for who has much": (
        [rule("*", "-", "*")],
        [rule("*", "*", "*")],
        ['{APIGroups:["*"], Resources:["*"], Verbs:["*"]}'],
    ),
    "a path below": ([paths("/healthz/*")], [paths("/healthz/ping")], []),
    "paths stand alone": (
        [],
        [paths("/a /b", "get put")],
        [
            '{NonResourceURLs:["/a"], Verbs:["get"]}',
            '{NonResourceURLs:["/a"], Verbs:["put"]}',
            '{NonResourceURLs:["/b"], Verbs:["get"]}',
            '{NonResourceURLs:["/b"], Verbs:["put"]}',
        ],
    ),
    "a path is no resource": ([rule("*", "*", "*")], [paths("/a")], ['{NonResourceURLs:["/a"], Verbs:["get"]}']),
}


@pytest.mark.parametrize(("held", "wanted", "lacking"), LACKING.values(), ids=LACKING)
def test_what_is_missing_is_told_once(held, wanted, lacking):
    """In the form that upstream writes it into its refusals."""
    assert [str(each) for each in missing(held, wanted)] == lacking


def test_a_rule_is_read_and_written_back():
    """Lists that are empty are left out."""
    shown = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}
    assert rule_of(shown).shown == shown

"""Which roles a user holds, and what decides where several bindings speak."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.apiserver.apimachinery.resource_types import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from embedded.apiserver.authorization.rbac import Rbac
from embedded.apiserver.request.attributes import Attributes
from embedded.apiserver.request.user_info import MASTERS, UserInfo
from embedded.tests.apiserver.conftest import Api

ANNE = UserInfo("anne", groups=("system:authenticated",))
READ_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}


class Rules:
    """Roles and bindings in a server of their own, and who may then get the pod `p`."""

    def __init__(self, api):
        self.resources = api.resources
        self.rbac = Rbac(api.resources)

    def role(self, name="reader", namespace="", *rules):
        rtype = ROLES if namespace else CLUSTER_ROLES
        self.resources.create(rtype, namespace, {"metadata": {"name": name}, "rules": list(rules or [READ_PODS])})

    def bind(self, *subjects, role="reader", kind="ClusterRole", namespace="", name="b"):
        rtype = ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS
        reference = {"kind": kind, "name": role}
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}
        self.resources.create(rtype, namespace, binding)

    def decide(self, user=ANNE, namespace="default", verb="get"):
        return self.rbac.decide(Attributes(user, verb, "", "v1", "pods", namespace=namespace, name="p"))


@pytest.fixture
def rules(api):
    return Rules(api)


def subject(kind, name, **more):
    return {"kind": kind, "name": name} | more


ACCOUNT = UserInfo("system:serviceaccount:default:robot")
SUBJECTS = {
    "the user": (subject("User", "anne"), ANNE, True, 'User "anne"'),
    "another user": (subject("User", "bert"), ANNE, False, ""),
    "a group": (subject("Group", "system:authenticated"), ANNE, True, 'Group "system:authenticated"'),
    "another group": (subject("Group", "painters"), ANNE, False, ""),
    "an account": (
        subject("ServiceAccount", "robot", namespace="default"),
        ACCOUNT,
        True,
        'ServiceAccount "robot/default"',
    ),
    "an account of elsewhere": (subject("ServiceAccount", "robot", namespace="kube-system"), ACCOUNT, False, ""),
}


@pytest.mark.parametrize(("bound", "user", "allowed", "to"), SUBJECTS.values(), ids=SUBJECTS)
def test_a_binding_is_for_its_subjects(rules, bound, user, allowed, to):
    """And the reason names binding, role and subject as upstream's audit log does."""
    rules.role()
    rules.bind(bound)
    decision = rules.decide(user)
    assert decision.allowed is allowed
    assert decision.reason == (to and f'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to {to}')


def test_of_several_fitting_subjects_the_first_is_named(rules):
    rules.role()
    rules.bind(subject("Group", "system:authenticated"), subject("User", "anne"))
    assert rules.decide().reason.endswith('to Group "system:authenticated"')


def test_a_role_binding_counts_in_its_namespace(rules):
    """Also where it gives a ClusterRole; an account without a namespace is one of the binding's."""
    rules.role()
    rules.bind(subject("User", "anne"), subject("ServiceAccount", "robot"), namespace="default")
    assert rules.decide().reason == 'RBAC: allowed by RoleBinding "b/default" of ClusterRole "reader" to User "anne"'
    assert rules.decide(ACCOUNT).reason.endswith('to ServiceAccount "robot/default"')
    assert not rules.decide(namespace="kube-system").allowed
    assert not rules.decide(namespace="").allowed


def test_a_role_is_looked_for_in_the_namespace(rules):
    rules.role(namespace="default")
    rules.bind(subject("User", "anne"), kind="Role", namespace="default")
    rules.bind(subject("User", "anne"), kind="Role", namespace="kube-system")
    assert rules.decide().allowed
    missing = rules.decide(namespace="kube-system")
    assert (missing.allowed, missing.reason) == (False, 'RBAC: roles.rbac.authorization.k8s.io "reader" not found')


def test_a_role_that_is_missing_does_not_hide_another(rules):
    """Rules only add up."""
    rules.role()
    rules.bind(subject("User", "anne"), role="nowhere", name="a")
    assert "nowhere" in rules.decide().reason
    rules.bind(subject("User", "anne"))
    assert rules.decide().allowed
    assert rules.rbac.rules_for(ANNE, "")[1] == 'clusterroles.rbac.authorization.k8s.io "nowhere" not found'


def test_changes_count_at_once(rules, api):
    """Whatever was decided before is forgotten with any change of a role or a binding."""
    rules.bind(subject("User", "anne"))
    assert not rules.decide().allowed
    rules.role()
    assert rules.decide().allowed
    api.resources.update(CLUSTER_ROLES, "", "reader", lambda role: {**role, "rules": []})
    assert not rules.decide().allowed
    api.resources.update(CLUSTER_ROLES, "", "reader", lambda role: {**role, "rules": [READ_PODS]})
    assert rules.decide().allowed
    api.resources.delete(CLUSTER_ROLE_BINDINGS, "", "b")
    assert not rules.decide().allowed


def test_masters_may_do_everything(rules):
    """Without any binding, so that a cluster can always be repaired."""
    decision = rules.decide(UserInfo("root", groups=(MASTERS,)))
    assert (decision.allowed, decision.reason) == (True, "")


NAMES = st.sampled_from(["anne", "bert"])
PLACES = st.sampled_from(["", "default", "kube-system"])
HELD = st.lists(st.tuples(NAMES, PLACES, st.sampled_from(["get", "list", "*"]), st.booleans()), max_size=6)


@settings(max_examples=60)
@given(HELD, NAMES, PLACES, st.sampled_from(["get", "list", "delete"]))
def test_what_is_gathered_says_what_the_bindings_say(held, name, namespace, verb):
    """Held against a reading of every binding, one by one."""
    rules = Rules(Api())
    for number, (who, place, what, group) in enumerate(held):
        rules.role(f"r{number}", place, READ_PODS | {"verbs": [what]})
        found = subject("Group", f"{who}s") if group else subject("User", who)
        rules.bind(
            found, role=f"r{number}", kind="Role" if place else "ClusterRole", namespace=place, name=f"b{number}"
        )
    expected = any(who == name and place in ("", namespace) and what in (verb, "*") for who, place, what, _ in held)
    user = UserInfo(name, groups=("system:authenticated", f"{name}s"))
    assert rules.decide(user, namespace, verb).allowed is expected

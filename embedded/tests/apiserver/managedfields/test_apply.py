"""Server-side apply between several managers, without a server: who owns what, what is removed, what conflicts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.apimachinery.objects import copy
from embedded.apiserver.apimachinery.resource_types import CONFIG_MAPS, JOBS, PODS
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.managedfields.apply import ApplyRequest, applied, as_kept, check, confined
from embedded.apiserver.managedfields.paths import shown
from embedded.apiserver.managedfields.tracking import FieldWriter, managers_of, set_managers, tracked

NOON = 1_790_000_000.0
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Story:
    """One object through applies and updates, each a second after the other."""

    def __init__(self, rtype=CONFIG_MAPS, live=None):
        self.rtype, self.live, self.now = rtype, live or {}, NOON

    def author(self, manager, subresource=""):
        self.now += 1
        return FieldWriter(manager, subresource, self.now)

    def apply(self, manager, content, force=False, subresource=""):
        meta = {"name": "x"} | content.get("metadata", {})
        config = {"apiVersion": self.rtype.api_version, "kind": self.rtype.kind, **content, "metadata": meta}
        config = as_kept(self.rtype, confined(self.rtype, config, subresource))
        self.live = applied(ApplyRequest(self.rtype, config, self.author(manager, subresource), force), self.live)
        return self

    def update(self, manager, change, sent=None, subresource=""):
        new = copy(self.live)
        change(new)
        set_managers(new, tracked(self.rtype, self.live, new, sent, self.author(manager, subresource)))
        self.live = new
        return self

    def owners(self):
        return {
            f"{owner.manager}/{owner.operation}": set(map(shown, claim.paths))
            for owner, claim in managers_of(self.live).items()
        }


def data(**values):
    return {"data": values}


def containers(*items):
    return {"spec": {"containers": list(items)}}


# -- ownership -------------------------------------------------------------------------------------------------


def test_an_applier_owns_what_it_applied_and_nothing_else():
    """Identity and the server's own fields belong to nobody."""
    story = Story().apply("me", data(a="1") | {"metadata": {"labels": {"l": "1"}, "uid": "u", "name": "x"}})
    assert story.owners() == {"me/Apply": {".data.a", ".metadata.labels.l"}}
    (entry,) = story.live["metadata"]["managedFields"]
    assert (entry["apiVersion"], entry["fieldsType"], entry["time"]) == ("v1", "FieldsV1", "2026-09-21T14:13:21Z")
    assert "subresource" not in entry


def test_the_same_value_is_shared():
    """No conflict; both own it, and either may stop."""
    story = Story().apply("one", data(a="1", b="1")).apply("two", data(a="1"))
    assert story.owners() == {"one/Apply": {".data.a", ".data.b"}, "two/Apply": {".data.a"}}
    story.apply("one", data(b="1"))
    assert story.live["data"] == {"a": "1", "b": "1"}
    story.apply("two", {})
    assert story.live["data"] == {"b": "1"}
    assert story.owners() == {"one/Apply": {".data.b"}}


def test_what_is_not_applied_any_more_goes_unless_somebody_else_has_it():
    """Also when the other is an updater."""
    story = Story().apply("me", data(a="1", b="1"))
    story.update("other", lambda obj: obj["data"].update(b="2")).apply("me", data(a="1"))
    assert story.live["data"] == {"a": "1", "b": "2"}
    story.apply("me", {})
    assert story.live["data"] == {"b": "2"}


def test_an_update_takes_what_it_changes_and_releases_what_it_removes():
    """Changed values move; removed fields are nobody's."""
    story = Story().apply("me", data(a="1", b="1", c="1"))
    story.update("they", lambda obj: obj["data"].update(a="2") or obj["data"].pop("b"))
    assert story.owners() == {"me/Apply": {".data.c"}, "they/Update": {".data.a"}}
    story.update("they", lambda obj: obj["data"].update(d="1"))
    assert story.owners()["they/Update"] == {".data.a", ".data.d"}


def test_an_update_that_changes_nothing_leaves_no_trace():
    """Neither a time nor an entry."""
    story = Story().apply("me", data(a="1"))
    before = copy(story.live)
    assert story.update("they", lambda obj: None).live == before


def test_forcing_takes_fields_from_everybody():
    """Ownership is handed over."""
    story = Story().apply("one", data(a="1")).apply("two", data(a="1")).apply("three", data(a="2"), force=True)
    assert story.live["data"] == {"a": "2"}
    assert story.owners() == {"three/Apply": {".data.a"}}


def test_list_items_are_shared_field_by_field():
    """Removal inside an item that another manager co-owns leaves the item and the other's fields."""
    first = containers({"name": "a", "image": "1", "command": ["x"]}, {"name": "b", "image": "1"})
    story = Story(PODS).apply("one", first)
    story.apply("two", containers({"name": "a", "tty": True}))
    story.apply("one", containers({"name": "b", "image": "1"}))
    assert story.live["spec"]["containers"] == [{"name": "a", "tty": True}, {"name": "b", "image": "1"}]
    assert '.spec.containers[name="a"].image' not in story.owners()["one/Apply"]


def test_an_item_goes_with_what_others_left_in_it_unowned():
    """An item is removed as a whole when nobody owns it, whatever an updater put inside and somebody else removed."""
    story = Story(PODS).apply("one", containers({"name": "a", "image": "1"}, {"name": "b", "image": "1"}))
    story.live["spec"]["containers"][1]["imagePullPolicy"] = "Always"  # a default: nobody's
    story.apply("one", containers({"name": "a", "image": "1"}))
    assert [item["name"] for item in story.live["spec"]["containers"]] == ["a"]


def test_a_field_with_a_default_key_is_found():
    """Ports are identified by number and protocol, which is TCP where it is left out."""
    port = {"name": "c", "image": "1", "ports": [{"containerPort": 80}]}
    story = Story(PODS).apply("one", containers(port))
    story.live["spec"]["containers"][0]["ports"][0]["protocol"] = "TCP"
    story.apply("one", containers({**port, "ports": [{"containerPort": 80, "name": "http"}]}))
    assert story.live["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP", "name": "http"}]


def test_a_status_is_only_applied_through_its_sub_resource():
    """And owned there separately."""
    story = Story(JOBS).apply("me", {"spec": {"parallelism": 1}, "status": {"active": 9}})
    assert "status" not in story.live
    story.apply("me", {"spec": {"parallelism": 7}, "status": {"active": 1}}, subresource="status")
    assert (story.live["spec"], story.live["status"]) == ({"parallelism": 1}, {"active": 1})
    entries = [(e["manager"], e.get("subresource", ""), e["fieldsV1"]) for e in story.live["metadata"]["managedFields"]]
    assert entries == [
        ("me", "", {"f:spec": {"f:parallelism": {}}}),
        ("me", "status", {"f:status": {"f:active": {}}}),
    ]


# -- conflicts -------------------------------------------------------------------------------------------------


def test_conflicts_name_every_field_and_manager():
    """In the words of kube-apiserver, updaters with their version; nothing changes."""
    story = Story().apply("one", data(a="1", b="1")).update("two", lambda obj: obj["data"].update(c="1"))
    before = copy(story.live)
    with pytest.raises(StatusError) as refused:
        story.apply("three", data(a="2", b="2", c="2", d="2"))
    error = refused.value
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "one":\n- .data.a\n- .data.b\nconflicts with "two" using v1:\n- .data.c'
    )
    assert error.details["causes"][0] == {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "one"',
        "field": ".data.a",
    }
    assert len(error.details["causes"]) == 3 and story.live == before


def test_a_single_conflict_has_its_own_words():
    """`conflict with`, and the field on the same line."""
    story = Story(PODS).apply("one", containers({"name": "c", "image": "1"}))
    with pytest.raises(StatusError, match=r"with 1 conflict: conflict with \"one\": .*\[name=\"c\"\]\.image"):
        story.apply("two", containers({"name": "c", "image": "2"}))


def test_a_status_manager_is_named_with_its_sub_resource():
    """The same manager elsewhere is another owner."""
    story = Story(PODS).apply("one", {"metadata": {"labels": {"a": "1"}}}, subresource="status")
    with pytest.raises(StatusError, match=r'conflict with "one" with subresource "status": \.metadata\.labels\.a'):
        story.apply("one", {"metadata": {"labels": {"a": "2"}}})


# -- the first apply -------------------------------------------------------------------------------------------


def made(**values):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "uid": "u"}, "data": values}


def test_what_was_there_before_the_first_apply_has_an_owner():
    """One entry for all of it, so that the first apply may conflict with it."""
    with pytest.raises(StatusError, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        Story(live=made(a="1")).apply("me", data(a="2"))
    story = Story(live=made(a="1", b="1")).apply("me", data(a="1"))
    assert story.owners() == {"me/Apply": {".data.a"}, "before-first-apply/Update": {".data", ".data.a", ".data.b"}}


def client_side(**values):
    note = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"}}'
    obj = made(**values)
    obj["metadata"]["annotations"] = {LAST_APPLIED: note}
    return obj


def test_what_kubectl_applied_from_its_side_is_its_own():
    """Others conflict with it by its name; kubectl itself takes over, and keeps the note true."""
    with pytest.raises(StatusError, match=r'conflict with "kubectl-client-side-apply" using v1: \.data\.a'):
        Story(live=client_side(a="1")).apply("me", data(a="2"))
    story = Story(live=client_side(a="1")).apply("kubectl", data(a="2"))
    assert story.live["data"] == {"a": "2"}
    assert '"data":{"a":"2"}' in story.live["metadata"]["annotations"][LAST_APPLIED]


def test_kubectl_does_not_take_over_what_others_have_changed_since():
    """The note says 1, the object 3: that change is somebody else's."""
    with pytest.raises(StatusError, match='conflict with "before-first-apply"'):
        Story(live=client_side(a="3")).apply("kubectl", data(a="2"))


def test_a_note_that_cannot_be_read_counts_as_none():
    """Annotations hold anything."""
    for note in ("", "{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","data":3}'):
        obj = client_side(a="1")
        obj["metadata"]["annotations"][LAST_APPLIED] = note
        assert "before-first-apply/Update" in Story(live=obj).apply("me", data(b="1")).owners()


# -- rewriting managedFields -----------------------------------------------------------------------------------


def test_a_client_may_rewrite_the_managers():
    """As kubectl does when it moves from client-side apply."""
    story = Story().apply("one", data(a="1"))
    sent = copy(story.live)["metadata"]["managedFields"]
    sent[0]["manager"] = "two"
    assert Story(live=story.live).update("x", lambda obj: None, sent).owners() == {"two/Apply": {".data.a"}}


@pytest.mark.parametrize("sent", [[], [{}]], ids=["nothing", "one empty entry"])
def test_a_client_may_have_the_managers_forgotten(sent):
    """Tracking then begins again with the next apply."""
    story = Story().apply("one", data(a="1")).update("x", lambda obj: obj["data"].update(b="1"), sent)
    assert "managedFields" not in story.live["metadata"]


NONSENSE = {
    "no operation": [{"manager": "x", "apiVersion": "v1", "fieldsType": "FieldsV1"}],
    "no version": [{"manager": "x", "operation": "Apply", "fieldsType": "FieldsV1"}],
    "another type": [{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV2"}],
    "other fields": [
        {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"x": 1}}
    ],
    "text": "x",
    "a list of texts": ["x"],
}


@pytest.mark.parametrize("sent", NONSENSE.values(), ids=NONSENSE)
def test_managers_that_cannot_be_read_are_ignored(sent):
    """The live ones stay."""
    story = Story().apply("one", data(a="1")).update("x", lambda obj: None, sent)
    assert story.owners() == {"one/Apply": {".data.a"}}


def test_a_sub_resource_does_not_rewrite_managers():
    """Only the object itself does."""
    story = Story(PODS).apply("one", containers({"name": "c", "image": "1"}))
    before = story.owners()
    assert story.update("x", lambda obj: None, [], subresource="status").owners() == before


def test_there_are_at_most_ten_updaters():
    """The oldest become one entry."""
    story = Story().apply("me", data(a="1"))
    for number in range(14):
        story.update(f"updater-{number:02}", lambda obj, n=number: obj["data"].update({f"k{n}": "1"}))
    owners = story.owners()
    assert owners["ancient-changes/Update"] == {f".data.k{n}" for n in range(5)}
    assert len(owners) == 1 + 1 + 9


# -- configurations --------------------------------------------------------------------------------------------

REFUSED = {
    "no kind": ({"apiVersion": "v1", "metadata": {}}, "invalid object type: /v1, Kind="),
    "another version": ({"apiVersion": "v2", "kind": "ConfigMap"}, "invalid object type: /v2, Kind=ConfigMap"),
    "no map of metadata": ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": 5}, "metadata of the applied"),
    "managers": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}},
        "metadata.managedFields must be nil",
    ),
    "an unknown field": (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n"}, "dat": {}},
        "failed to create typed patch object (n/x; v1, Kind=ConfigMap): .dat: field not declared in schema",
    ),
}


@pytest.mark.parametrize(("config", "told"), REFUSED.values(), ids=REFUSED)
def test_configurations_that_cannot_be_applied(config, told):
    """400 with the place."""
    with pytest.raises(StatusError) as refused:
        check(CONFIG_MAPS, "x", config)
    assert refused.value.code == 400 and told in refused.value.message


def test_another_spelling_of_a_quantity_is_no_other_value():
    """0.5 is 500m; and nothing is added that the configuration does not say."""
    config = containers({"name": "c", "resources": {"limits": {"cpu": 0.5}}})
    kept = as_kept(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, **config})
    assert kept["spec"] == {"containers": [{"name": "c", "resources": {"limits": {"cpu": "500m"}}}]}


# -- properties ------------------------------------------------------------------------------------------------

VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("abc")}, optional={"image": st.sampled_from("12"), "tty": st.booleans()}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item["name"],
)
CONFIGS = st.builds(lambda labels, items: {"metadata": {"labels": labels}, **containers(*items)}, VALUES, ITEMS)
STEPS = st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), CONFIGS), min_size=1, max_size=5)


def within(config, value):
    """Whether a value has everything that a configuration says."""
    if isinstance(config, dict):
        return all(key in value and within(item, value[key]) for key, item in config.items())
    if isinstance(config, list):
        named = {item["name"]: item for item in value}
        return all(item["name"] in named and within(item, named[item["name"]]) for item in config)
    return config == value


@given(STEPS)
def test_after_any_history_the_last_application_holds_and_is_owned_exactly(steps):
    """The object says what was applied last; its manager owns just that; applying it again changes nothing."""
    story = Story(PODS)
    for manager, config in steps:
        story.apply(manager, config, force=True)
    manager, config = steps[-1]
    assert within({"spec": config["spec"]}, story.live)
    assert within(config["metadata"]["labels"], story.live["metadata"].get("labels", {}))
    alone = Story(PODS).apply(manager, config).owners().get(f"{manager}/Apply", set())
    assert story.owners().get(f"{manager}/Apply", set()) == alone
    before = copy(story.live)
    assert story.apply(manager, config, force=True).live == before


@given(st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("12"), max_size=6), st.randoms())
def test_applies_of_disjoint_managers_make_their_merge(values, random):
    """In whichever order; and when each takes its part back, nothing is left."""
    parts = {
        name: {key: values[key] for key in values if key in keys} for name, keys in (("one", "abc"), ("two", "def"))
    }
    order = ["one", "two"]
    random.shuffle(order)
    story = Story()
    for name in order:
        story.apply(name, data(**parts[name]) if parts[name] else {})
    assert story.live.get("data", {}) == values
    for name in order:
        story.apply(name, {})
    assert "data" not in story.live and story.owners() == {}

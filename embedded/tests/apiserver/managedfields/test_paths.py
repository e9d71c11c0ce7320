"""Field paths and their written forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.apiserver.managedfields.paths import from_fields, shown, to_fields

STEPS = st.one_of(
    st.text(max_size=3).map(lambda name: f"f:{name}"),
    st.integers(0, 9).map(lambda port: f'k:{{"containerPort":{port},"protocol":"TCP"}}'),
    st.sampled_from(['v:"a"', "v:1"]),
)


@given(st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=8))
def test_fields_say_exactly_which_paths(paths):
    """Parents of members are members only where they are said to be."""
    assert from_fields(to_fields(paths)) == paths


def test_members_with_something_inside_carry_a_dot():
    """The form that clients see in managedFields."""
    paths = {("f:data",), ("f:data", "f:a"), ("f:metadata", "f:labels", "f:b")}
    assert to_fields(paths) == {"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:labels": {"f:b": {}}}}


def test_keys_mean_the_same_however_a_client_writes_them():
    """Spacing and order of keys are the client's taste."""
    assert from_fields({'k:{"protocol": "TCP", "containerPort": 80}': {}}) == {
        ('k:{"containerPort":80,"protocol":"TCP"}',)
    }


@pytest.mark.parametrize("fields", [[], {"x": {}}, {"q:x": {}}, {"k:nonsense": {}}, {"k:1": {}}, {"f:x": 1}])
def test_what_is_not_fields_v1_is_an_error(fields):
    """ValueError, whatever is wrong."""
    with pytest.raises(ValueError, match="FieldsV1"):
        from_fields(fields)


SHOWN = {
    ".spec.replicas": ("f:spec", "f:replicas"),
    '.spec.containers[name="c"].image': ("f:spec", "f:containers", 'k:{"name":"c"}', "f:image"),
    '.ports[containerPort=80,protocol="TCP"]': ("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'),
    '.metadata.finalizers[="a/b"]': ("f:metadata", "f:finalizers", 'v:"a/b"'),
    ".list[3]": ("f:list", "i:3"),
}


@pytest.mark.parametrize(("text", "path"), SHOWN.items(), ids=SHOWN)
def test_paths_as_conflicts_show_them(text, path):
    """fieldpath.Path.String of structured-merge-diff."""
    assert shown(path) == text

"""What the built-in schemas say about fields."""

from embedded.apiserver.apimachinery.resource_types import (
    BUILT_IN,
    CUSTOM_RESOURCE_DEFINITIONS,
    DISRUPTION_BUDGETS,
    PODS,
)
from embedded.apiserver.definitions.field_types import type_of


def test_every_built_in_type_is_known():
    """Each type the server knows of has a schema, and every field of it a type."""
    for rtype in BUILT_IN:
        whole = type_of(rtype)
        assert whole is not None and whole.kind == "struct", rtype.id
        assert {"apiVersion", "kind", "metadata"} <= set(whole.fields), rtype.id


def test_merge_keys_and_go_types():
    """As in the Go structs: `patchStrategy`, `patchMergeKey` and the type that messages name."""
    spec = type_of(PODS).fields["spec"]
    volumes = spec.fields["volumes"]
    assert (volumes.go, volumes.merge_key, volumes.strategies) == ("[]v1.Volume", "name", ("merge", "retainKeys"))
    assert spec.fields["nodeSelector"].go == "map[string]string"
    assert spec.fields["tolerations"].strategies == ()
    assert type_of(DISRUPTION_BUDGETS).fields["spec"].fields["selector"].strategies == ("replace",)


def test_zeros_are_what_go_writes_unasked():
    """Required fields; pointers and optional ones are not among them."""
    container = type_of(PODS).fields["spec"].fields["containers"].items
    assert set(container.zeros) == {"name"}


def test_a_schema_that_refers_to_itself_has_an_end():
    """Only as deep as somebody walks."""
    version = type_of(CUSTOM_RESOURCE_DEFINITIONS).fields["spec"].fields["versions"].items
    schema = version.fields["schema"].fields["openAPIV3Schema"]
    assert schema.fields["properties"].items.fields["not"].struct == "JSONSchemaProps"

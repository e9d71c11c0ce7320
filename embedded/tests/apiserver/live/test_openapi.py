"""What kubectl makes of the OpenAPI documents and of strict decoding."""

import json
import shutil

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]
EXPLAINED = {
    "pod.spec.containers": ("imagePullPolicy", "FIELD: containers <[]Container>"),
    "job": ("KIND:       Job", "spec\t<JobSpec>"),
    "crd.spec.versions": ("additionalPrinterColumns", "<[]CustomResourceDefinitionVersion>"),
    "quota.spec": ("hard\t<map[string]Quantity>",),
    "pdb.spec.selector": ("matchExpressions",),
    "lease.spec.renewTime": ("renewTime is a time when",),
}


@pytest.mark.parametrize(("what", "words"), EXPLAINED.items(), ids=EXPLAINED)
def test_built_in_types_are_explained(live, what, words):
    """With the descriptions of Kubernetes, to any depth."""
    told = live.kubectl("explain", what)
    assert all(word in told for word in words), told


def test_recursion_ends(live):
    """Everything below a pod, and below the schema in a definition, which contains itself."""
    assert "preferredDuringSchedulingIgnoredDuringExecution" in live.kubectl("explain", "pod", "--recursive")
    assert "preserveUnknownFields" in live.kubectl("explain", "crd.spec", "--recursive")


def test_what_is_no_field_is_said_to_be_none(live):
    """Exit code 1."""
    assert 'field "frob" does not exist' in live.kubectl("explain", "pod.frob", code=1)


def pod(name, **container):
    spec = {"containers": [{"name": "c", "image": "i", **container}], "schedulingGates": [{"name": "a.b/c"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_misspelt_field_is_refused_or_warned_of(live):
    """As kubectl asks by default, and with --validate=warn."""
    told = live.kubectl("create", "-f", "-", stdin=pod("misspelt", imagee="x"), code=1)
    assert (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagee"'
        in told
    )
    told = live.kubectl("create", "--validate=warn", "-f", "-", stdin=pod("misspelt", imagee="x"))
    assert 'Warning: unknown field "spec.containers[0].imagee"' in told and "pod/misspelt created" in told
    live.kubectl("delete", "pod", "misspelt")


def test_a_second_apply_goes_by_the_third_version_of_openapi(live):
    """A strategic patch made from the schemas; the empty v2 document is not asked for."""
    live.kubectl("apply", "-f", "-", stdin=pod("twice", env=[{"name": "A", "value": "1"}]))
    changed = json.loads(json.dumps(pod("twice", env=[{"name": "A", "value": "1"}])).replace('"i"', '"j"'))
    told = live.kubectl("apply", "-v=7", "-f", "-", stdin=changed)
    assert "pod/twice configured" in told and "/openapi/v3/api/v1?hash=" in told and "/openapi/v2" not in told
    live.kubectl("delete", "pod", "twice")

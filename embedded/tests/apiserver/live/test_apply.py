"""kubectl's ways to change objects declaratively, against the server as a process over TLS."""

import json
import shutil

import pytest

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH; install it to run these"),
]
MANAGERS = 'jsonpath={range .metadata.managedFields[*]}{.manager}/{.operation}{" "}{end}'


@pytest.fixture
def kubectl(live, request):
    """kubectl in a namespace of the test's own."""
    namespace = f"a-{abs(hash(request.node.name)) % 10**8}"
    live.kubectl("create", "namespace", namespace)

    def run(*arguments, **options):
        return live.kubectl("-n", namespace, *arguments, **options)

    yield run
    live.kubectl("delete", "namespace", namespace, "--wait=false")


def config_map(**data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def apply(kubectl, obj, *options, code=0):
    return kubectl("apply", *options, "-f", "-", stdin=obj, code=code)


def test_server_side_apply_from_the_first_to_the_last(kubectl):
    """Created, unchanged, in conflict, forced, and taken back."""
    assert "serverside-applied" in apply(kubectl, config_map(a="1"), "--server-side")
    assert kubectl("diff", "--server-side", "-f", "-", stdin=config_map(a="1")) == ""
    other = ("--server-side", "--field-manager=other")
    told = apply(kubectl, config_map(a="2"), *other, code=1)
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.a\nPlease review the fields above' in told
    apply(kubectl, config_map(a="2", b="2"), *other, "--force-conflicts")
    assert '+  a: "1"' in kubectl(
        "diff", "--server-side", "--force-conflicts", "-f", "-", stdin=config_map(a="1"), code=1
    )
    apply(kubectl, config_map(b="2"), *other)
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data}") == '{"b":"2"}'
    assert kubectl("get", "cm", "c", "-o", MANAGERS) == "other/Apply "


def test_other_commands_own_what_they_change(kubectl):
    """label, annotate, patch and set, each under its own name; hidden unless asked for."""
    apply(kubectl, config_map(a="1") | {"metadata": {"name": "c", "labels": {"l": "1"}}}, "--server-side")
    kubectl("label", "cm", "c", "l=2", "--overwrite")
    kubectl("annotate", "cm", "c", "note=1")
    kubectl("patch", "cm", "c", "--type=json", "-p", '[{"op":"add","path":"/data/b","value":"1"}]')
    found = kubectl("get", "cm", "c", "-o", MANAGERS)
    changes = [f"kubectl-{command}/Update" for command in ("annotate", "label", "patch")]
    assert sorted(found.split()) == [*changes, "kubectl/Apply"]
    assert "managedFields" not in kubectl("get", "cm", "c", "-o", "yaml")
    assert "f:note" in kubectl("get", "cm", "c", "-o", "yaml", "--show-managed-fields")


def test_moving_from_client_side_apply(kubectl):
    """Without a conflict, although values change; kubectl moves the ownership itself and leaves the way back open."""
    apply(kubectl, config_map(a="1"))
    assert "unchanged" in apply(kubectl, config_map(a="1"))
    assert kubectl("get", "cm", "c", "-o", MANAGERS) == ""
    told = apply(kubectl, config_map(a="2"), "--server-side", "--field-manager=other", code=1)
    assert 'conflict with "kubectl-client-side-apply" using v1: .data.a' in told
    apply(kubectl, config_map(a="2"), "--server-side")
    assert kubectl("get", "cm", "c", "-o", MANAGERS) == "kubectl/Apply kubectl-last-applied/Apply "
    assert "configured" in apply(kubectl, config_map(a="3"))
    assert "serverside-applied" in apply(kubectl, config_map(a="4"), "--server-side")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "4"


def test_a_field_nobody_knows_is_named(kubectl):
    """From either side, in kubectl's words."""
    bad = config_map(a="1") | {"dat": {}}
    assert 'strict decoding error: unknown field "dat"' in apply(kubectl, bad, code=1)
    assert ".dat: field not declared in schema" in apply(kubectl, bad, "--server-side", code=1)


def test_edit_and_replace(kubectl, tmp_path, monkeypatch):
    """An editor's change is patched in; replace overwrites or, with --force, makes a new object."""
    apply(kubectl, config_map(a="one"))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/a: one/a: two/" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    assert "configmap/c edited" in kubectl("edit", "cm", "c")
    assert "no changes made" in kubectl("edit", "cm", "c")
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.data.a}") == "two"
    uid = kubectl("get", "cm", "c", "-o", "jsonpath={.metadata.uid}")
    assert "replaced" in kubectl("replace", "-f", "-", stdin=config_map(a="three"))
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.metadata.uid}{.data.a}") == f"{uid}three"
    assert "replaced" in kubectl("replace", "--force", "-f", "-", stdin=config_map(a="four"))
    assert kubectl("get", "cm", "c", "-o", "jsonpath={.metadata.uid}") != uid


def test_deletions_with_every_propagation(kubectl):
    """Dependents go before, after or not at all."""
    for policy, left in (("foreground", ""), ("background", ""), ("orphan", "configmap/d\n")):
        owner = json.loads(kubectl("create", "cm", "o", "-o", "json"))["metadata"]
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "o",
            "uid": owner["uid"],
            "blockOwnerDeletion": True,
        }
        dependent = {**config_map(), "metadata": {"name": "d", "ownerReferences": [reference]}}
        kubectl("create", "-f", "-", stdin=dependent)
        kubectl("delete", "cm", "o", f"--cascade={policy}", "--timeout=20s")
        if left:
            assert kubectl("get", "cm", "d", "-o", "jsonpath={.metadata.ownerReferences}") == ""
            kubectl("delete", "cm", "d")
        else:
            kubectl("wait", "--for=delete", "cm/d", "--timeout=20s")

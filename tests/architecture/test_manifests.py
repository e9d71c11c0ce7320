"""deploy/crds and the quick start are what a real API server accepts: structural schemas, complete objects."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
CRDS = ROOT / "deploy" / "crds"
DAEMONSET = ROOT / "deploy" / "daemonset"
QUICKSTART = ROOT / "examples" / "quickstart"
DEFINITIONS = (
    "podgroups.yaml",
    "clusternetworktopologies.yaml",
    "nodemetrics.yaml",
    "nodeslos.yaml",
    "noderesourcetopologies.yaml",
)
# Not allowed in a structural schema (Kubernetes documentation, "Specifying a structural schema").
NOT_STRUCTURAL = {"$ref", "definitions", "dependencies", "patternProperties", "additionalItems", "id", "uniqueItems"}
BATCH = ("kubernetes.io/batch-cpu", "kubernetes.io/batch-memory")


def documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def definition(name: str) -> dict[str, Any]:
    (document,) = documents(CRDS / name)
    return document


def nodes(schema: dict[str, Any], where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield where, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{where}.{name}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword], f"{where}[]")


def schema_nodes(name: str) -> list[tuple[str, dict[str, Any]]]:
    (version,) = definition(name)["spec"]["versions"]
    return list(nodes(version["schema"]["openAPIV3Schema"]))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_definition_is_named_after_its_resource(name: str) -> None:
    """PLURAL.GROUP, one version that is served and stored."""
    document = definition(name)
    spec = document["spec"]
    assert (document["apiVersion"], document["kind"]) == ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert document["metadata"]["name"] == f"{spec['names']['plural']}.{spec['group']}"
    assert [(v["name"], v["served"], v["storage"]) for v in spec["versions"]] == [("v1alpha1", True, True)]


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_schema_is_structural(name: str) -> None:
    """Every value has a type or is an int-or-string, arrays have items, no forbidden keyword."""
    wrong = []
    for where, schema in schema_nodes(name):
        typed = "type" in schema or schema.get("x-kubernetes-int-or-string")
        both = "properties" in schema and "additionalProperties" in schema
        unlisted = schema.get("type") == "array" and "items" not in schema
        if not typed or both or unlisted or NOT_STRUCTURAL & schema.keys():
            wrong.append(where)
    assert wrong == []


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_field_of_a_schema_is_described(name: str) -> None:
    """`kubectl explain` has an answer everywhere."""
    wrong = []
    for where, schema in schema_nodes(name):
        top = where in (".apiVersion", ".kind", ".metadata")
        if not top and not where.endswith("[]") and "description" not in schema:
            wrong.append(where)
    assert wrong == []


def test_pod_groups_group_is_approved() -> None:
    """Without the annotation a real API server refuses a group below k8s.io."""
    assert "api-approved.kubernetes.io" in definition("podgroups.yaml")["metadata"]["annotations"]


def test_an_unknown_suppress_policy_is_stored() -> None:
    """As upstream: the agent must see a wrong value to be able to name it."""
    fields = dict(schema_nodes("nodeslos.yaml"))
    policy = fields[".spec.resourceUsedThresholdWithBE.cpuSuppressPolicy"]
    assert policy["type"] == "string" and "enum" not in policy


def test_a_gang_needs_one_member_at_least() -> None:
    """minMember below 1 is refused when it is written, with a text that says what it is."""
    field = dict(schema_nodes("podgroups.yaml"))[".spec.minMember"]
    assert field["minimum"] == 1
    assert "1 or more" in field["description"]


def test_the_kustomization_lists_every_manifest() -> None:
    """`kubectl apply -k deploy/crds` applies what the embedded cluster starts with."""
    (kustomization,) = documents(CRDS / "kustomization.yaml")
    assert sorted(kustomization["resources"]) == sorted(
        path.name for path in CRDS.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_priority_classes_are_koordinators() -> None:
    """Names and values of the four bands."""
    found = {document["metadata"]["name"]: document["value"] for document in documents(CRDS / "priorityclasses.yaml")}
    assert found == {"koord-prod": 9000, "koord-mid": 7000, "koord-batch": 5000, "koord-free": 3000}


def granted() -> set[tuple[str, str, str]]:
    """Group, resource and verb of everything the agent may do."""
    (role,) = [d for d in documents(DAEMONSET / "rbac.yaml") if d["kind"] == "ClusterRole"]
    rules = role["rules"]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def test_the_agent_may_evict_and_not_delete() -> None:
    """Evictions respect disruption budgets; a delete would not. No verb on all resources, and none on secrets."""
    rights = granted()
    assert {("", "pods/eviction", "create"), ("", "pods", "patch"), ("", "events", "create")} <= rights
    assert not {(r, v) for _, r, v in rights if v in ("*", "delete", "deletecollection") or r in ("*", "secrets")}


def test_the_agents_container_has_what_its_last_resort_needs() -> None:
    """Root without privilege: two capabilities, the host's process numbers, and its cgroups to write."""
    (daemon_set,) = [d for d in documents(DAEMONSET / "agent.yaml") if d["kind"] == "DaemonSet"]
    spec = daemon_set["spec"]["template"]["spec"]
    (agent,) = [container for container in spec["containers"] if container["name"] == "agent"]
    security = agent["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["KILL", "SYS_RESOURCE"]}
    assert security["runAsUser"] == 0 and not security.get("privileged") and spec["hostPID"]
    mounts = {mount["name"]: mount.get("readOnly", False) for mount in agent["volumeMounts"]}
    assert not mounts["cgroup"] and not mounts["state"] and mounts["proc"] and mounts["sys"]


def pod_of(document: dict[str, Any]) -> dict[str, Any]:
    """A Pod, or the template of what makes pods."""
    return document if document["kind"] == "Pod" else document["spec"]["template"]


def workloads(*paths: Path) -> list[dict[str, Any]]:
    found = [document for path in paths for document in documents(path)]
    return [document for document in found if document["kind"] in ("Pod", "Job")]


def test_the_quick_starts_batch_work_asks_for_batch_resources_only() -> None:
    """No native CPU or memory, BE and koord-batch: what makes a pod live off the rest. Memory is limited to the request;
    CPU is not, so that a worker may use all that is idle.
    """
    for document in workloads(QUICKSTART / "2-batch-job.yaml", QUICKSTART / "3-gang.yaml"):
        pod = pod_of(document)
        assert pod["metadata"]["labels"]["koordinator.sh/qosClass"] == "BE"
        assert pod["spec"]["priorityClassName"] == "koord-batch"
        for container in pod["spec"]["containers"]:
            resources = container["resources"]
            assert tuple(resources["requests"]) == BATCH
            assert resources["limits"] == {BATCH[1]: resources["requests"][BATCH[1]]}


def test_the_gang_has_as_many_members_as_it_needs() -> None:
    """minMember, completions and parallelism are three, and the label names the PodGroup."""
    group, job = documents(QUICKSTART / "3-gang.yaml")
    assert group["spec"]["minMember"] == job["spec"]["completions"] == job["spec"]["parallelism"] == 3
    label = job["spec"]["template"]["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"]
    assert label == group["metadata"]["name"]


def test_every_worker_runs_the_same_program() -> None:
    """Today's way and ours are compared on the same work."""
    paths = (QUICKSTART / "2-batch-job.yaml", QUICKSTART / "3-gang.yaml", QUICKSTART / "today" / "batch.yaml")
    programs = {pod_of(w)["spec"]["containers"][0]["command"][2] for w in workloads(*paths)}
    assert len(programs) == 1


@pytest.mark.parametrize("path", sorted(QUICKSTART.rglob("*.yaml")), ids=lambda path: str(path.name))
def test_a_program_in_a_manifest_compiles(path: Path) -> None:
    """Also in Python 3.9, which its image has: no newer syntax than that."""
    for document in workloads(path):
        for container in pod_of(document)["spec"]["containers"]:
            ast.parse(container["command"][2], path.name, feature_version=(3, 9))

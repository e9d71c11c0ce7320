"""deploy/scheduler is complete, asks for no more than the scheduler uses, and fits the program it starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from scheduler.__main__ import parse
from scheduler.settings import SchedulerSettings

FOLDER = Path(__file__).parent.parent.parent / "deploy" / "scheduler"


def documents(kind: str) -> list[dict[str, Any]]:
    found = [each for path in sorted(FOLDER.glob("*.yaml")) for each in yaml.safe_load_all(path.read_text()) if each]
    return [document for document in found if document["kind"] == kind]


def granted(kind: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb."""
    (role,) = documents(kind)
    rules = role["rules"]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def pod() -> dict[str, Any]:
    (deployment,) = documents("Deployment")
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def test_the_kustomization_lists_every_manifest() -> None:
    """`kubectl apply -k deploy/scheduler` applies them all."""
    (kustomization,) = documents("Kustomization")
    names = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(kustomization["resources"]) == names


def test_only_what_it_does() -> None:
    """It binds, evicts, writes status and makes what jobs need; it may not change a pod's or node's spec, nor read any
    secret.
    """
    rights = granted("ClusterRole")
    assert {("", "pods/binding", "create"), ("", "pods/status", "patch"), ("", "nodes/status", "patch")} <= rights
    assert ("", "pods", "delete") in rights
    assert not {(r, v) for _, r, v in rights if "*" in (r, v) or v in ("update", "deletecollection")}
    assert {v for _, r, v in rights if r == "secrets"} == {"create"}
    assert not {("", "pods", "patch"), ("", "nodes", "patch"), ("", "nodes", "delete")} & rights
    assert {v for _, r, v in rights if r == "configmaps"} == {"get", "list", "watch", "create", "patch"}


def test_its_own_pod_and_lease_are_in_its_own_namespace() -> None:
    """The label and the lease take rights in one namespace alone, where the settings put the lease."""
    assert ("", "pods", "patch") in granted("Role") and ("coordination.k8s.io", "leases", "update") in granted("Role")
    (config,) = documents("ConfigMap")
    settings = msgspec.yaml.decode(config["data"]["settings.yaml"], type=SchedulerSettings)
    (role,) = documents("Role")
    assert settings.lease.namespace == role["metadata"]["namespace"]
    assert settings.lease.name in [n for rule in role["rules"] for n in rule.get("resourceNames", ())]


def test_the_flags_are_the_programs(tmp_path: Path) -> None:
    """The command line parses, and every port it opens is declared."""
    (container,) = pod()["containers"]
    settings = tmp_path / "settings.yaml"
    settings.write_text("{}")
    arguments = [each for each in container["args"] if not each.startswith("--settings")]
    options, _ = parse([*arguments, f"--settings={settings}"])
    declared = {port["containerPort"] for port in container["ports"]}
    assert {int(each.rpartition(":")[2]) for each in (options.link_listen, options.http_listen)} == declared
    names = {each["name"] for each in container["env"]}
    assert names == {"POD_NAME", "POD_NAMESPACE", "POD_IP"}


def test_the_service_selects_the_leader() -> None:
    """By the labels of the Deployment's pods and the one that the leader puts on its own."""
    (service,) = [each for each in documents("Service") if each["metadata"]["name"] == "sublet-scheduler"]
    (deployment,) = documents("Deployment")
    selector = dict(service["spec"]["selector"])
    assert selector.pop("sublet.dev/leader") == "true"
    assert selector == deployment["spec"]["selector"]["matchLabels"]
    (budget,) = documents("PodDisruptionBudget")
    assert budget["spec"]["selector"] == deployment["spec"]["selector"] and budget["spec"]["minAvailable"] == 1

"""deploy/chart with real Helm: the same objects as deploy/, each value where it belongs, and a release's whole life."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from embedded.tests.apiserver.conftest import Live
from kube.dialects.sublet.fleet import Fleet, fleet
from kube.objects import ConfigMap
from tests.architecture.test_deploy import rendered
from tests.architecture.test_deploy_chart import CHART, PROGRAMS, chosen, values

HELM = os.environ.get("HELM") or shutil.which("helm") or ""
KUBERNETES = "1.33.0"
Object = dict[str, Any]
Objects = dict[tuple[str, str], Object]
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not HELM, reason="helm is neither on PATH nor named by $HELM")]


class Helm:
    """Real Helm with folders of its own."""

    def __init__(self, directory: Path, kubeconfig: Path | None = None) -> None:
        homes = {f"HELM_{name}_HOME": str(directory / name) for name in ("CACHE", "CONFIG", "DATA")}
        self._env = {**os.environ, **homes, "KUBECONFIG": str(kubeconfig or os.devnull)}
        self._values = directory / "values.yaml"

    def run(self, *arguments: str, code: int = 0, chosen: Object | None = None) -> str:
        """What it says, on both channels; `chosen` are values."""
        self._values.write_text(json.dumps(chosen or {}))
        given = ("-f", str(self._values)) if chosen is not None else ()
        done = subprocess.run([HELM, *arguments, *given], capture_output=True, text=True, env=self._env, timeout=60)
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    def objects(self, *more: str, version: str = KUBERNETES, **chosen: Any) -> Objects:
        """What it would send."""
        where = ("-n", "sublet-system", "--kube-version", version)
        return by_name(yaml.safe_load_all(self.run("template", "it", str(CHART), *where, *more, chosen=chosen)))


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return Helm(tmp_path_factory.mktemp("helm"))


def by_name(objects: Iterator[Object]) -> Objects:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects if each}


def nested(path: str, value: Any) -> Object:
    """`value` at a dotted path."""
    return reduce(lambda inner, name: {name: inner}, reversed(path.split(".")), value)


def at(found: Any, path: str) -> Any:
    """What is at a dotted path; a number is a place in a list; None where there is nothing."""
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else (found or {}).get(step)
    return found


def pod(program: str, path: str) -> str:
    """The path of something in a program's pod."""
    kind = "DaemonSet" if program == "agent" else "Deployment"
    return f"{kind}/sublet-{program}/spec.template.spec.{path}"


def test_it_has_no_faults(helm: Helm) -> None:
    """As Helm's own linter sees it, with warnings as errors."""
    assert "0 chart(s) failed" in helm.run("lint", "--strict", str(CHART), "--kube-version", KUBERNETES)


@pytest.mark.parametrize(("issued", "folder"), [(False, "."), (True, "overlays/cert-manager")])
def test_without_values_it_is_what_kubectl_applies(helm: Helm, issued: bool, folder: str) -> None:
    """Object by object, but for the namespace, which is the release's, and the priority classes, which come with it."""
    found, applied = helm.objects(certManager={"enabled": issued}), by_name(iter(rendered(folder)))
    del applied["Namespace", "sublet-system"]
    classes = {key: found.pop(key) for key in [*found] if key[0] == "PriorityClass"}
    switch = found["ConfigMap", "sublet-fleet"]
    assert fleet(msgspec.convert(switch, ConfigMap)) == Fleet()
    assert {**found, ("ConfigMap", "sublet-fleet"): applied["ConfigMap", "sublet-fleet"]} == applied
    koordinator = by_name(iter(rendered("crds")))
    for key, each in classes.items():
        assert each["metadata"].pop("annotations")["helm.sh/hook"] == "pre-install,pre-upgrade"
        assert each == koordinator[key]
    definitions = {key for key in koordinator if key[0] == "CustomResourceDefinition"}
    assert {key for key in helm.objects("--include-crds") if key[0] == "CustomResourceDefinition"} == definitions
    assert len(classes) + len(definitions) == len(koordinator)


def test_another_namespace_is_all_that_differs(helm: Helm) -> None:
    """Nothing that says the namespace is forgotten, and nothing else is touched."""
    there = json.dumps([*helm.objects("-n", "batch-system").values()])
    assert by_name(iter(json.loads(there.replace("batch-system", "sublet-system")))) == helm.objects()
    assert "sublet-system" not in there


@pytest.mark.parametrize("namespace", ["123", "true"])
def test_a_namespace_is_text(helm: Helm, namespace: str) -> None:
    """Also one that YAML would take for a number or a truth."""
    there = helm.objects("-n", namespace)
    assert {each["metadata"].get("namespace", namespace) for each in there.values()} == {namespace}
    assert at(there["RoleBinding", "sublet-agent-fleet"], "subjects.0.namespace") == namespace


IMAGE = {
    "registry": ("registry.test:5000/batch/", "containers.0.image", "registry.test:5000/batch/sublet-{}:0.10.0"),
    "tag": ("next", "containers.0.image", "sublet-{}:next"),
    "pullPolicy": ("Always", "containers.0.imagePullPolicy", "Always"),
    "pullSecrets": ([{"name": "login"}], "imagePullSecrets", [{"name": "login"}]),
}
DIGEST = f"sha256:{'0123456789abcdef' * 4}"
OWN_IMAGE = {
    **IMAGE,
    "repository": ("ours", "containers.0.image", "ours:0.10.0"),
    "digest": (DIGEST, "containers.0.image", f"sublet-{{}}:0.10.0@{DIGEST}"),
}
TOLERATIONS = [{"key": "batch", "operator": "Exists"}]
PLAIN = {
    "resources": ({"limits": {"memory": "9Gi"}}, "containers.0.resources.limits.memory", "9Gi"),
    "affinity": ({"nodeAffinity": {"a": 1}}, "affinity.nodeAffinity", {"a": 1}),
    "nodeSelector": ({"pool": "infra"}, "nodeSelector", {"pool": "infra"}),
    "tolerations": (TOLERATIONS, "tolerations", TOLERATIONS),
    "extraArgs": (["--log-format=json"], "containers.0.args.-1", "--log-format=json"),
}


def cases() -> Iterator[tuple[str, Any, str, Any]]:
    """Value, what is chosen, where it then is, and what stands there."""
    for name, (value, path, shown) in IMAGE.items():
        yield f"image.{name}", value, pod("agent", path), filled(shown, "agent")
    for program in PROGRAMS:
        for name, (value, path, shown) in OWN_IMAGE.items():
            yield f"{program}.image.{name}", value, pod(program, path), filled(shown, program)
        for name, (value, path, shown) in PLAIN.items():
            yield f"{program}.{name}", value, pod(program, path), shown
    for program in PROGRAMS[1:]:
        yield f"{program}.replicas", 3, f"Deployment/sublet-{program}/spec.replicas", 3
    yield from MORE


def filled(shown: Any, program: str) -> Any:
    return shown.format(program) if isinstance(shown, str) else shown


SETTINGS = "data.settings.yaml"
MORE = [
    ("fleet.mode", "lend", "ConfigMap/sublet-fleet/data", {"mode": "lend"}),
    ("fleet.paused", True, "ConfigMap/sublet-fleet/data", {"paused": "true"}),
    ("fleet.canary", "", "ConfigMap/sublet-fleet/data", {"canary": ""}),
    ("priorityClasses", False, "PriorityClass/koord-batch/value", None),
    ("policies", "never", "ValidatingAdmissionPolicy/sublet-agent-own-node/spec", None),
    ("certManager.enabled", True, "Role/sublet-admission/rules", None),
    ("agent.settings", {"tick_seconds": 2}, "ConfigMap/sublet-agent-settings/settings", {"fleet": "sublet-system/sublet-fleet", "tick_seconds": 2}),
    ("scheduler.settings", {"lease": {"seconds": 9}}, "ConfigMap/sublet-scheduler-settings/settings", {"lease": {"namespace": "sublet-system", "seconds": 9}}),
    ("admission.settings", {"limits": {}}, "ConfigMap/sublet-admission-settings/settings", {"limits": {}}),
    ("agent.guardArgs", ["--kubepods=/k"], pod("agent", "containers.1.args.-1"), "--kubepods=/k"),
]  # fmt: skip


def test_each_value_has_a_case() -> None:
    """So that none is without effect."""
    assert sorted(case[0] for case in cases()) == sorted(chosen(values()))


@pytest.mark.parametrize(("value", "choice", "where", "shown"), [*cases()], ids=[case[0] for case in cases()])
def test_a_value_is_where_it_belongs(helm: Helm, value: str, choice: Any, where: str, shown: Any) -> None:
    """And without it something else is there."""
    kind, name, path = where.split("/")
    seen = []
    for objects in (helm.objects(**nested(value, choice)), helm.objects()):
        found = objects.get((kind, name), {})
        if kind == "ConfigMap" and path == "settings" and found:
            found = {"settings": yaml.safe_load(found["data"]["settings.yaml"])}
        seen.append(at(found, path) if found else None)
    assert seen[0] == shown != seen[1]


def test_a_programs_own_image_wins(helm: Helm) -> None:
    """Over the one for all three, in every container."""
    all_images = {"registry": "everywhere.test", "tag": "1", "pullPolicy": "Always"}
    objects = helm.objects(image=all_images, agent={"image": {"registry": "nodes.test", "pullPolicy": "Never"}})
    agent, scheduler = (
        objects[kind, name] for kind, name in (("DaemonSet", "sublet-agent"), ("Deployment", "sublet-scheduler"))
    )
    for container in at(agent, "spec.template.spec.containers"):
        assert (container["image"], container["imagePullPolicy"]) == ("nodes.test/sublet-agent:1", "Never")
    assert at(scheduler, "spec.template.spec.containers.0.image") == "everywhere.test/sublet-scheduler:1"


@pytest.mark.parametrize("issued", [False, True])
def test_settings_of_admission_are_mounted_and_a_change_replaces_pods(helm: Helm, issued: bool) -> None:
    """With the certificates' files and without; pods read settings at their start."""
    marks = []
    for most in (1, 2):
        objects = helm.objects(certManager={"enabled": issued}, admission={"settings": {"limits": {"most": most}}})
        template = objects["Deployment", "sublet-admission"]["spec"]["template"]
        marks.append(template["metadata"]["annotations"]["checksum/settings"])
        (container,) = template["spec"]["containers"]
        assert "--settings=/etc/sublet/settings/settings.yaml" in container["args"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted == {volume["name"] for volume in template["spec"]["volumes"]} >= {"settings"}
    assert marks[0] != marks[1]


def test_one_replica_may_be_drained(helm: Helm) -> None:
    """A budget of one for one pod would stop its node for ever."""
    objects = helm.objects(scheduler={"replicas": 1})
    assert [name for kind, name in objects if kind == "PodDisruptionBudget"] == ["sublet-admission"]


@pytest.mark.parametrize(("version", "policies", "there"), [
    ("1.29.9", "auto", False), ("1.30.0", "auto", True), ("1.31.4-gke.1", "auto", True), ("1.29.9", "always", True),
])  # fmt: skip
def test_policies_follow_the_version(helm: Helm, version: str, policies: str, there: bool) -> None:
    """Of the API server, unless somebody says so."""
    kinds = {kind for kind, _ in helm.objects(version=version, policies=policies)}
    assert ({"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} <= kinds) is there


WRONG = {
    "a name that is none": ({"agnet": {}}, "agnet"),
    "a name that is none, deeper": ({"fleet": {"pause": True}}, "pause"),
    "a mode that is none": ({"fleet": {"mode": "on"}}, "fleet.mode"),
    "a truth as text": ({"fleet": {"paused": "no"}}, "fleet.paused"),
    "nobody": ({"scheduler": {"replicas": 0}}, "scheduler.replicas"),
    "a registry with a scheme": ({"image": {"registry": "https://registry.test"}}, "image.registry"),
    "a digest cut short": ({"agent": {"image": {"digest": "sha256:12"}}}, "agent.image.digest"),
    "an argument that is none": ({"agent": {"extraArgs": ["log-format"]}}, "agent.extraArgs"),
    "a policy that is none": ({"policies": True}, "policies"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_one_error(helm: Helm, name: str) -> None:
    """That names it; nothing is rendered."""
    wrong, named = WRONG[name]
    said = helm.run("template", "it", str(CHART), "--kube-version", KUBERNETES, code=1, chosen=wrong)
    assert said.count("\n- ") == 1 and named in said and "kind:" not in said


def test_a_kubernetes_that_is_too_old_is_refused(helm: Helm) -> None:
    """By Helm, before anything is sent."""
    said = helm.run("template", "it", str(CHART), "--kube-version", "1.24.0", code=1)
    assert "requires kubeVersion" in said


class Release:
    """A release on a server of its own."""

    def __init__(self, directory: Path) -> None:
        self.cluster = Live(directory)
        self.kubectl = self.cluster.kubectl
        self._helm = Helm(directory, self.cluster.kubeconfig)
        self.kubectl("create", "namespace", "sublet-system")

    def helm(self, verb: str, **chosen: Any) -> str:
        chart = () if verb == "uninstall" else (str(CHART),)
        return self._helm.run(verb, "sublet", *chart, "-n", "sublet-system", chosen=chosen if chart else None)

    def get(self, *what: str, path: str) -> Any:
        return at(json.loads(self.kubectl("get", "-n", "sublet-system", *what, "-o", "json")), path)

    def switch(self) -> Object:
        found: Object = self.get("configmap", "sublet-fleet", path="data") or {}
        return found

    def patch(self, **data: str) -> None:
        self.kubectl(
            "-n",
            "sublet-system",
            "patch",
            "configmap",
            "sublet-fleet",
            "--type=merge",
            "-p",
            json.dumps({"data": data}),
        )


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Release]:
    """Before its installation."""
    found = Release(tmp_path)
    yield found
    found.cluster.stop()


def test_what_others_made_is_left_as_it_is(release: Release) -> None:
    """Definitions and priority classes that are there stay, through upgrade and removal; the missing ones are made."""
    release.kubectl("create", "-f", str(CHART / "crds" / "nodeslos.yaml"))
    release.kubectl("label", "crd", "nodeslos.slo.koordinator.sh", "owner=koordinator")
    release.kubectl("create", "priorityclass", "koord-mid", "--value=7999")
    release.helm("install")
    # Somebody takes one over that came with the release.
    release.kubectl("delete", "priorityclass", "koord-batch")
    release.kubectl("create", "priorityclass", "koord-batch", "--value=5999")
    for verb in ("upgrade", "upgrade", "uninstall"):
        release.helm(verb)
        assert release.get("crd", "nodeslos.slo.koordinator.sh", path="metadata.labels") == {"owner": "koordinator"}
        made = {each["metadata"]["name"]: each["value"] for each in release.get("priorityclass", path="items")}
        mine = {name: value for name, value in made.items() if name.startswith("koord-")}
        assert mine == {"koord-prod": 9000, "koord-mid": 7999, "koord-batch": 5999, "koord-free": 3000}
    assert "nodemetrics.slo.koordinator.sh" in release.kubectl("get", "crd")
    left = release.kubectl("get", "clusterrole,mutatingwebhookconfiguration,validatingadmissionpolicy", "-o", "name")
    assert "sublet" not in left


def test_an_upgrade_leaves_the_switch_and_the_authority(release: Release) -> None:
    """Values win where they are set, and only there; the webhooks keep the authority that admission's leader wrote."""
    said = release.helm("install")
    assert "the fleet's mode is observe" in said and "pod-security.kubernetes.io/enforce=privileged" in said
    assert release.switch() == {}
    release.patch(mode="lend", paused="true", canary="pool=batch")
    authority = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "QUJD"}]
    webhooks = ("mutatingwebhookconfiguration", "sublet-admission")
    release.kubectl("patch", *webhooks, "--type=json", "-p", json.dumps(authority))
    release.kubectl("label", "namespace", "sublet-system", "pod-security.kubernetes.io/enforce=privileged")
    said = release.helm("upgrade", image={"tag": "next"})
    assert "the fleet's mode is lend" in said and "WARNING" not in said
    assert release.switch() == {"mode": "lend", "paused": "true", "canary": "pool=batch"}
    assert release.get(*webhooks, path="webhooks.0.clientConfig.caBundle") == "QUJD"
    assert "sublet-agent:next" in release.get("daemonset", "sublet-agent", path="spec.template.spec.containers.0.image")
    release.helm("upgrade", fleet={"mode": "observe"})
    assert release.switch() == {"mode": "observe", "paused": "true", "canary": "pool=batch"}
    release.helm("upgrade", fleet={})
    assert release.switch() == {"paused": "true", "canary": "pool=batch"}

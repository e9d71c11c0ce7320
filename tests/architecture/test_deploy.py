"""deploy/ as a person applies it: rendered by real kubectl, complete, without privilege, and fit for the programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from agent.__main__ import _parser as agent_parser
from agent.options import AgentOptions
from agent.settings import AgentSettings
from cli.uninstall.removal import PART
from embedded.tests.apiserver.conftest import Api
from kube.dialects.sublet.fleet import Fleet, FleetMode, fleet
from kube.objects import ConfigMap
from scheduler.__main__ import parse as parse_scheduler

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
Object = dict[str, Any]
PROGRAMS = ("sublet-agent", "sublet-scheduler", "sublet-admission")
CRDS = (
    "crds",
    "crds/optional/volcano",
    "crds/optional/kueue",
    "crds/optional/sublet",
    "crds/optional/koordinator",
    "crds/optional/jobset",
)
FIRST = ("CustomResourceDefinition", "Namespace", "ServiceAccount")
VALUES = {"NODE_NAME": "node-1", "HOST_IP": "10.0.0.1", "POD_IP": "10.1.0.1", "POD_NAME": "pod-0", "POD_NAMESPACE": "s"}


@cache
def rendered(folder: str) -> tuple[Object, ...]:
    """What `kubectl apply -k` would send."""
    kubectl = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if kubectl is None:
        pytest.skip("needs kubectl: make test installs one")
    done = subprocess.run([kubectl, "kustomize", str(DEPLOY / folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(document for document in yaml.safe_load_all(done.stdout) if document)


def found(kind: str, name: str, folder: str = ".") -> Object:
    (one,) = [each for each in rendered(folder) if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def workload(name: str, folder: str = ".") -> Object:
    return found("DaemonSet" if name == "sublet-agent" else "Deployment", name, folder)


def pod(name: str, folder: str = ".") -> Object:
    spec: Object = workload(name, folder)["spec"]["template"]["spec"]
    return spec


def containers() -> Iterator[tuple[str, Object]]:
    for name in PROGRAMS:
        for container in pod(name)["containers"]:
            yield f"{name}/{container['name']}", container


def arguments(container: Object) -> list[str]:
    """Of the program, as the kubelet would give them."""
    given = [*container["command"][2:], *container["args"]]
    for name, value in VALUES.items():
        given = [each.replace(f"$({name})", value) for each in given]
    return given


def post(api: Api, body: Object) -> tuple[int, Object]:
    """Create it as `kubectl create --validate=strict` does."""
    version = body["apiVersion"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    kinds = {each["kind"]: each for each in api.get(base)["resources"] if "/" not in each["name"]}
    served = kinds[body["kind"]]
    where = f"/namespaces/{body['metadata']['namespace']}" if served["namespaced"] else ""
    return api.call("POST", f"{base}{where}/{served['name']}?fieldValidation=Strict", body)


def refused(api: Api, folder: str) -> list[str]:
    def rank(each: Object) -> int:
        return FIRST.index(each["kind"]) if each["kind"] in FIRST else len(FIRST)

    answers = [(each, *post(api, each)) for each in sorted(rendered(folder), key=rank)]
    return [f"{each['kind']} {each['metadata']['name']}: {answer}" for each, code, answer in answers if code != 201]


def test_the_api_server_takes_everything() -> None:
    """Definitions first, then the rest: nothing refused, no field unknown, no expression that does not compile."""
    api = Api()
    assert [line for folder in (*CRDS, ".") for line in refused(api, folder)] == []


def test_the_overlay_renders_and_gives_up_the_secrets() -> None:
    """With cert-manager admission reads files, may touch no Secret, and the webhooks' authority is injected."""
    folder = "overlays/cert-manager"
    roles = [each for each in rendered(folder) if each["kind"] in ("Role", "ClusterRole")]
    rights = [rule["verbs"] for role in roles for rule in role["rules"] if "secrets" in rule.get("resources", ())]
    assert rights == [["create"]]  # the scheduler's, for keys of jobs
    (admission,) = pod("sublet-admission", folder)["containers"]
    assert "--certificates=files" in admission["args"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        annotations = found(kind, "sublet-admission", folder)["metadata"]["annotations"]
        assert annotations["cert-manager.io/inject-ca-from"] == "sublet-system/sublet-admission"
    volumes = {each["name"]: each for each in pod("sublet-agent", folder)["volumes"]}
    assert "configMap" not in volumes["ca"] and volumes["ca"]["secret"]["secretName"] == "sublet-agent-tls"


@pytest.mark.parametrize("folder", sorted(path.parent for path in DEPLOY.rglob("kustomization.yaml")), ids=str)
def test_a_kustomization_lists_every_manifest_beside_it(folder: Path) -> None:
    """A file that nobody applies is a trap."""
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())
    named = {*told["resources"], *(patch["path"] for patch in told.get("patches", ()) if "path" in patch)}
    assert {path.name for path in folder.glob("*.yaml")} - {"kustomization.yaml"} <= named


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_container_has_more_than_it_needs(name: str) -> None:
    """Not privileged, no way to more privilege, a root that is read only, the runtime's filter of system calls."""
    assert pod(name)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod(name)["containers"]:
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
        assert not security.get("privileged") and security["capabilities"]["drop"] == ["ALL"]
        requests, limits = container["resources"]["requests"], container["resources"]["limits"]
        assert {"cpu", "memory"} <= requests.keys() and "memory" in limits and "cpu" not in limits


@pytest.mark.parametrize("name", PROGRAMS[1:])
def test_two_replicas_that_are_apart_where_they_can_be(name: str) -> None:
    """Not root, critical, and on a cluster of one node they run all the same."""
    deployment, spec = workload(name), pod(name)
    assert (deployment["spec"]["replicas"], spec["priorityClassName"]) == (2, "system-cluster-critical")
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] > 0
    labels = deployment["spec"]["template"]["metadata"]["labels"].items()
    (term,) = spec["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert term["podAffinityTerm"]["labelSelector"]["matchLabels"].items() <= labels
    (spread,) = spec["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway" and spread["labelSelector"]["matchLabels"].items() <= labels
    budget = found("PodDisruptionBudget", name)["spec"]
    assert budget["minAvailable"] == 1 and budget["selector"] == deployment["spec"]["selector"]


def test_the_agent_is_on_every_node_and_replaced_a_few_at_a_time() -> None:
    """Critical, tolerates all, and its guard runs beside it."""
    daemon_set, spec = workload("sublet-agent"), pod("sublet-agent")
    assert spec["priorityClassName"] == "system-node-critical" and spec["tolerations"] == [{"operator": "Exists"}]
    assert daemon_set["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "10%"}
    assert [container["name"] for container in spec["containers"]] == ["agent", "guard"]


def test_every_capability_and_host_path_has_its_reason() -> None:
    """Beside it in the manifest, where a reader of the diff sees it, and in the guide."""
    guide = (ROOT / "docs" / "deploy.md").read_text()
    lines = [line.strip() for line in (DEPLOY / "daemonset" / "agent.yaml").read_text().splitlines()]
    (agent, guard) = pod("sublet-agent")["containers"]
    assert "add" not in guard["securityContext"]["capabilities"]
    for capability in agent["securityContext"]["capabilities"]["add"]:
        assert lines[lines.index(f"- {capability}") - 1].startswith("#"), capability
        assert f"`{capability}`" in guide
    for volume in pod("sublet-agent")["volumes"]:
        if "hostPath" in volume:
            # The volume's own entry, not a container's mount of it.
            assert lines[lines.index(f"- name: {volume['name']}") - 1].startswith("#"), volume
            assert f"`{volume['hostPath']['path']}`" in guide


def test_every_mount_has_a_volume_and_the_other_way_round() -> None:
    """A pod with a mount of nothing is refused."""
    for name in PROGRAMS:
        mounted = {each["name"] for container in pod(name)["containers"] for each in container.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in pod(name).get("volumes", ())}, name


def test_the_agents_probes_need_no_port() -> None:
    """Its port is the node's, where any user may listen while no agent does: a socket beside its own is asked."""
    agent, _ = pod("sublet-agent")["containers"]
    options = agent_parser().parse_args(arguments(agent))
    asked = AgentOptions(options.node_name, options.state_file, socket=options.socket).probe_socket
    mounts = {each["name"]: Path(each["mountPath"]) for each in agent["volumeMounts"]}
    assert asked.parent == mounts["run"]
    pages = {"startupProbe": "healthz", "livenessProbe": "healthz", "readinessProbe": "readyz"}
    for probe, page in pages.items():
        assert agent[probe]["exec"]["command"] == ["/usr/bin/sublet-probe", str(asked), page]
        assert "httpGet" not in agent[probe]


def test_probes_speak_tls_to_the_port_that_is_served() -> None:
    """On the pod's own address, since several pods may share a machine."""
    for name, container in containers():
        if name.startswith("sublet-agent/"):
            continue
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        (listen,) = [each for each in arguments(container) if each.startswith("--http-listen")]
        assert "0.0.0.0" not in " ".join(arguments(container)), name
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            get = container[probe]["httpGet"]
            assert (get["scheme"], ports[get["port"]]) == ("HTTPS", int(listen.rpartition(":")[2])), name


def test_the_flags_are_the_programs(tmp_path: Path) -> None:
    """Each command line parses, that of the guard too."""
    settings = tmp_path / "settings.yaml"
    settings.write_text("{}")
    agent, guard = (agent_parser().parse_args(arguments(each)) for each in pod("sublet-agent")["containers"])
    assert guard.guard and not agent.guard
    assert (agent.state_file, agent.cgroup_root) == (guard.state_file, guard.cgroup_root)
    assert guard.heartbeat == agent.socket.with_name("agent.heartbeat")
    (scheduler,) = pod("sublet-scheduler")["containers"]
    given = [each for each in arguments(scheduler) if not each.startswith("--settings")]
    assert parse_scheduler([*given, f"--settings={settings}"])


def test_the_agents_settings_are_read() -> None:
    """The ConfigMap says nothing but which switch they follow: the one that is applied beside it."""
    text = found("ConfigMap", "sublet-agent-settings")["data"]["settings.yaml"]
    switch = found("ConfigMap", "sublet-fleet")["metadata"]
    followed = f"{switch['namespace']}/{switch['name']}"
    assert msgspec.yaml.decode(text, type=AgentSettings) == AgentSettings(fleet=followed)


def test_a_fresh_fleet_observes() -> None:
    """Nothing is lent until somebody says so; the switch is read as the agents read it."""
    told = fleet(msgspec.convert(found("ConfigMap", "sublet-fleet"), ConfigMap))
    assert told == Fleet(FleetMode.OBSERVE, paused=False, canary=None)
    assert not told.lends({"pool": "batch"})


def test_the_token_is_for_the_scheduler_alone() -> None:
    """Its audience is what the scheduler asks TokenReview for, and it lives an hour."""
    (volume,) = [each for each in pod("sublet-agent")["volumes"] if "projected" in each]
    (source,) = volume["projected"]["sources"]
    assert source["serviceAccountToken"]["expirationSeconds"] == 3600
    (scheduler,) = pod("sublet-scheduler")["containers"]
    assert f"--link-audience={source['serviceAccountToken']['audience']}" in scheduler["args"]


def test_no_role_has_a_wildcard() -> None:
    """Only admission reads Secrets, by name and in its own namespace, and the scheduler makes those of jobs; no program deletes
    but the scheduler its victims, jobs whose time is over, commands about jobs, and Workloads that no job controls.
    """
    deleted = (["pods"], ["trainingjobs"], ["jobs"], ["commands"], ["workloads"])
    for role in (each for each in rendered(".") if each["kind"] in ("Role", "ClusterRole")):
        for rule in role["rules"]:
            assert "*" not in [*rule["verbs"], *rule.get("resources", ()), *rule.get("apiGroups", ())]
            if "secrets" in rule.get("resources", ()) and role["metadata"]["name"] == "sublet-scheduler":
                assert rule["verbs"] == ["create"]
            elif "secrets" in rule.get("resources", ()):
                assert (role["kind"], role["metadata"]["name"]) == ("Role", "sublet-admission")
                assert rule["verbs"] == ["create"] or rule["resourceNames"]
            # Both run commands in containers of any node: a GET is enough to open an exec.
            assert not {"nodes/proxy", "pods/exec", "pods/proxy"} & set(rule.get("resources", ()))
            if "delete" in rule["verbs"] and role["metadata"]["name"] != "sublet-edit":
                assert role["metadata"]["name"] == "sublet-scheduler" and rule["resources"] in deleted


def test_everything_carries_the_label_that_uninstalling_goes_by() -> None:
    """Also the namespace: without it `sublet uninstall` takes it for one that others live in, and keeps it."""
    label, value = PART.split("=")
    without = [
        (each["kind"], each["metadata"]["name"])
        for each in rendered(".")
        if (each["metadata"].get("labels") or {}).get(label) != value
    ]
    assert without == []


def test_the_network_is_closed_but_for_named_ports() -> None:
    """Each opened port is one that a container declares."""
    policies = {each["metadata"]["name"]: each["spec"] for each in rendered(".") if each["kind"] == "NetworkPolicy"}
    assert policies["sublet-default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in PROGRAMS[1:]:
        opened = {port["port"] for rule in policies[name]["ingress"] for port in rule["ports"]}
        assert opened == {port["name"] for container in pod(name)["containers"] for port in container["ports"]}
        assert policies[name]["podSelector"]["matchLabels"].items() <= workload(name)["metadata"]["labels"].items()


def test_every_image_is_of_this_version() -> None:
    """And named after its program."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for name, container in containers():
        assert container["image"] == f"{name.partition('/')[0]}:{version}"

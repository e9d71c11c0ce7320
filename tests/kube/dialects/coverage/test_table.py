"""Every line of the table: what is honoured changes what its reader makes of a minimal document, what is not does not
and draws the warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from embedded.apiserver.cel.match_conditions import programs
from embedded.apiserver.cel.variables import EVALUATED
from kube.dialects.coverage.asking_pods import in_pod, in_pod_group, in_profile
from kube.dialects.coverage.asking_scheduler import in_scheduler_config
from kube.dialects.coverage.asking_settings import NODE_SLO_FIELDS, in_config, in_node_slo
from kube.dialects.coverage.of_node import in_node, unmet
from kube.dialects.coverage.rows import Asked, CoverageRow, Support, Surface, sentence
from kube.dialects.coverage.table import ROWS
from kube.dialects.gangs import membership, podgroups
from kube.dialects.koordinator import nodesettings, profiles, schedulerconfig, usagethresholds
from kube.dialects.koordinator.cpubinding import cpu_rules
from kube.dialects.koordinator.nodemetric import node_metric
from kube.dialects.upstream import core_objects
from kube.objects import (
    ClusterColocationProfile,
    ConfigMap,
    Metadata,
    NodeMetric,
    NodeSLO,
    Pod,
    PodGroup,
    PodSpec,
)
from model.node import Node
from model.nodesettings import NodeSettings

ROOT = Path(__file__).parents[4]
CLASSES = ("lsrClass", "lsClass", "beClass", "systemClass")
DEFAULTS = NodeSettings()
LONGEST = 256


def of(*surfaces: Surface) -> list[CoverageRow]:
    return [row for row in ROWS if row.surface in surfaces]


def name(row: CoverageRow) -> str:
    return row.name


def nested(parts: list[str], value: Any, beside: Mapping[str, Any]) -> Any:
    """The value under its path; what it needs stands beside it."""
    if not parts:
        return value
    key, inner = parts[0].removesuffix("[]"), nested(parts[1:], value, beside)
    mine = {} if len(parts) > 1 else beside
    return {**mine, key: [inner] if parts[0].endswith("[]") else inner}


def config(key: str, fields: Any) -> ConfigMap:
    """One key, with the cluster's fields where the readers look for them."""
    inline = key in ("colocation-config", "host-application-config") or key.startswith(("cpu-norm", "resource-ampl"))
    text = msgspec.json.encode(fields if inline else {"clusterStrategy": fields}).decode()
    return ConfigMap(Metadata("slo-controller-config", "koordinator-system"), {key: text})


def minimal(row: CoverageRow, told: bool = True) -> list[tuple[str, Any]]:
    """(key, fields) of each document that asks for the row; without it where nothing is to be `told`."""
    first, *rest = row.field.split(".")
    paths = [[part.replace("*Class", name) for part in rest] for name in CLASSES] if "*Class" in row.field else [rest]
    return [(first, nested(parts, row.example, row.beside) if told else {}) for parts in paths]


def settings_of(row: CoverageRow, told: bool) -> NodeSettings:
    """What an agent makes of it."""
    first, rest = row.field.split(".")[0], row.field.split(".")[1:]
    if row.surface is Surface.NODE_METRIC:
        spec = nested(rest, row.example, {}) if told else {}
        sources = nodesettings.Sources(metric=NodeMetric(Metadata("n"), spec=spec))
    else:
        sources = nodesettings.Sources(config_map=config(first, minimal(row, told)[0][1]))
    documents, faults = nodesettings.read(sources)
    assert faults == ()
    return nodesettings.node_settings(documents, DEFAULTS)


SETTINGS = [row for row in of(Surface.SETTINGS, Surface.NODE_METRIC) if row.field != "status"]


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.support is Support.HONOURED], ids=name)
def test_honoured_settings_are_read(row: CoverageRow) -> None:
    """The agent's settings differ by the field, and nobody is warned of it."""
    assert settings_of(row, told=True) != settings_of(row, told=False)
    if row.surface is Surface.SETTINGS:
        for key, fields in minimal(row):
            assert in_config(config(key, fields)) == ()


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.warns], ids=name)
def test_other_settings_warn(row: CoverageRow) -> None:
    """One sentence that names the field and fits into a header, for each class of pods; the NodeSLO's alike."""
    for key, fields in minimal(row):
        if key != "extensions":
            (asked,) = [each for each in in_config(config(key, fields)) if each.row == row]
            assert asked.places[0].startswith(key)
            assert len(sentence("ConfigMap koordinator-system/slo-controller-config", asked)) <= LONGEST
        if key in NODE_SLO_FIELDS:
            spec = {NODE_SLO_FIELDS[key]: fields}
            (asked,) = in_node_slo(NodeSLO(Metadata("n"), spec))
            assert asked.row == row and asked.places[0].startswith(f"spec.{NODE_SLO_FIELDS[key]}")


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.support is Support.NOT_YET], ids=name)
def test_settings_that_are_not_acted_on_change_nothing(row: CoverageRow) -> None:
    """Whoever makes the agent read one changes its row, too."""
    if not row.field.startswith("extensions"):
        assert settings_of(row, told=True) == settings_of(row, told=False)


def pod(row: CoverageRow, told: bool = True) -> Pod:
    labels: dict[str, str] = {"app": "a"}
    annotations: dict[str, str] = {}
    resources = {}
    key = row.field.replace("*", "x")
    if row.surface is Surface.POD_RESOURCE:
        resources = {"requests": {key: row.example}} if told else {}
    else:
        where = labels if row.surface is Surface.POD_LABEL else annotations
        if row.surface is Surface.GANG:
            annotations |= (
                {"gang.scheduling.koordinator.sh/name": "gang"} if row.field.endswith("min-available") else {}
            )
            if not row.field.endswith(("/name", "/min-available")):
                annotations |= {
                    "gang.scheduling.koordinator.sh/name": "train",
                    "gang.scheduling.koordinator.sh/min-available": "1",
                }
        where |= row.beside
        where |= {key: row.example} if told else {}
    spec = {"containers": [{"name": "main", "resources": resources}]}
    return Pod(Metadata("p", "default", "u1", labels=labels, annotations=annotations), msgspec.convert(spec, PodSpec))


PODS = [
    row
    for row in of(Surface.POD_LABEL, Surface.POD_ANNOTATION, Surface.POD_RESOURCE, Surface.GANG)
    if not row.field.startswith("spec.")
]


def made_of(source: Pod) -> Any:
    """The pod in the model, without the labels, which it carries whatever they mean."""
    return msgspec.structs.replace(core_objects.pod(source), labels={})


def asked_by(source: Pod) -> tuple[Asked, ...]:
    return in_pod(source.metadata, source.spec)


BY_ADMISSION_OR_CLASS = ("node.koordinator.sh/extended-resource-spec", "scheduling.koordinator.sh/resource-spec")
"""Read by nobody of ours, or of LSE and LSR pods alone (test_cpubinding.py)."""


@pytest.mark.parametrize("row", [row for row in PODS if row.support is Support.HONOURED], ids=name)
def test_honoured_words_of_pods_are_read(row: CoverageRow) -> None:
    """The pod in the model differs by it, and nobody is warned of it."""
    if row.field not in BY_ADMISSION_OR_CLASS and row.values != ("LS",):
        assert made_of(pod(row)) != made_of(pod(row, told=False))
    assert [asked.row.name for asked in asked_by(pod(row))] == []


@pytest.mark.parametrize("row", [row for row in PODS if row.warns], ids=name)
def test_other_words_of_pods_warn(row: CoverageRow) -> None:
    """One sentence that names the place and fits into a header."""
    (asked,) = asked_by(pod(row))
    told = sentence(f"Pod default/{'n' * 20}", asked)
    assert asked.row == row and row.field.rstrip("*") in told and len(told) <= LONGEST


@pytest.fixture(scope="module")
def sends() -> Callable[[Mapping[str, Any]], bool]:
    """Whether the API server asks admission about a new pod of a namespace without colocation."""
    hooks = list(yaml.safe_load_all((ROOT / "deploy/admission/webhooks.yaml").read_text()))[1]["webhooks"]
    (conditions,) = [hook["matchConditions"] for hook in hooks if hook["name"] == "other.pods.sublet.dev"]
    compiled = programs(conditions)

    def sent(source: Mapping[str, Any]) -> bool:
        names = {"object": source, "oldObject": None, "request": {"operation": "CREATE"}}
        return all(each.value(EVALUATED.activation(names)) for each in compiled)

    return sent


@pytest.mark.parametrize("row", [row for row in PODS if row.warns], ids=name)
def test_whoever_warns_is_asked(row: CoverageRow, sends: Callable[[Mapping[str, Any]], bool]) -> None:
    """The webhook's conditions let the pod through, wherever in it the words stand."""
    source = msgspec.to_builtins(pod(row))
    source["spec"] = {"containers": source["spec"]["containers"]}
    assert sends(source)
    if row.surface is Surface.POD_RESOURCE:
        assert sends({**source, "spec": {"containers": [{}], "initContainers": source["spec"]["containers"]}})


def test_an_ordinary_pod_is_not_sent(sends: Callable[[Mapping[str, Any]], bool]) -> None:
    """Pods that have nothing to do with Koordinator wait for nobody."""
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "1"}}
    metadata = {"labels": {"app": "a", "app.kubernetes.io/name": "a"}, "annotations": {"a": "b"}}
    assert not sends({"metadata": metadata, "spec": {"containers": [{"resources": resources}]}})


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in PODS
        if row.support in (Support.NOT_YET, Support.NEVER) and row.surface is not Surface.POD_RESOURCE
    ],
    ids=name,
)
def test_words_of_pods_that_are_not_acted_on_change_nothing(row: CoverageRow) -> None:
    """Whoever reads one changes its row, too."""
    assert made_of(pod(row)) == made_of(pod(row, told=False))


def group(row: CoverageRow, told: bool = True) -> PodGroup:
    spec = {"minMember": 2, **(nested(row.field.split(".")[1:], row.example, {}) if told else {})}
    return msgspec.convert({"metadata": {"name": "train", "namespace": "default"}, "spec": spec}, PodGroup)


@pytest.mark.parametrize("row", [row for row in of(Surface.GANG) if row.field.startswith("spec.")], ids=name)
def test_fields_of_pod_groups(row: CoverageRow) -> None:
    """The gang differs by what is honoured; what is not warns."""
    honoured = row.support is Support.HONOURED
    assert (podgroups.pod_group(group(row)) != podgroups.pod_group(group(row, told=False))) is honoured
    asked = in_pod_group(Metadata("train", "default"), nested(row.field.split(".")[1:], row.example, {}))
    assert [each.row for each in asked] == ([] if honoured else [row])


PROFILE_KEY = re.compile(r"metadata\.(\w+)\[(.+)]")


def profile(row: CoverageRow, told: bool = True) -> ClusterColocationProfile:
    found = PROFILE_KEY.fullmatch(row.field)
    if found:
        both: dict[str, Any] = {found[1]: {found[2]: row.example}} if told else {}
        return ClusterColocationProfile(Metadata("a", **both), {})
    return ClusterColocationProfile(Metadata("a"), nested(row.field.split(".")[1:], row.example, {}) if told else {})


@pytest.mark.parametrize("row", of(Surface.PROFILE), ids=name)
def test_fields_of_profiles(row: CoverageRow) -> None:
    """The profile differs by what is honoured; what is not warns."""
    honoured = row.support is Support.HONOURED
    assert (profiles.profile(profile(row)) != profiles.profile(profile(row, told=False))) is honoured
    assert [each.row for each in in_profile(profile(row))] == ([] if honoured else [row])


@pytest.mark.parametrize(
    "row", [row for row in PODS if row.warns and row.surface is not Surface.POD_RESOURCE], ids=name
)
def test_profiles_that_write_such_words_warn(row: CoverageRow) -> None:
    """By their labels and annotations, by qosClass, and by a patch."""
    field = "labels" if row.surface is Surface.POD_LABEL else "annotations"
    written = {field: {row.field.replace("*", "x"): row.example}}
    for spec in (written, {"patch": {"metadata": written}}):
        (asked,) = in_profile(ClusterColocationProfile(Metadata("a"), spec))
        assert asked.row == row
    (asked,) = in_profile(ClusterColocationProfile(Metadata("a"), {"qosClass": "LSR"}))
    assert asked.places == ("spec.qosClass=LSR",)


def of_node(row: CoverageRow, told: bool = True) -> Any:
    """What is read of a Node with the row's word as label or annotation, whichever it is."""
    word = {row.field: row.example} if told else {}
    label = row.consequence.startswith("label")
    node = Node("n", labels=word if label else {}, annotations={} if label else word)
    documents, faults = nodesettings.read(nodesettings.Sources(node=node))
    assert faults == ()
    settings = nodesettings.node_settings(documents, DEFAULTS)
    return settings, documents.node, usagethresholds.load_limits(node.annotations, "Node n"), cpu_rules(node.labels, 0)


BY_OTHERS = ("originExtendedAllocatable", "cpu-normalization-enabled", "enable-numa-reservation")
"""Written by us, or read where the node's machine is known: tests of those readers prove them."""


@pytest.mark.parametrize("row", of(Surface.NODE), ids=name)
def test_words_of_nodes(row: CoverageRow) -> None:
    """What is read of the Node differs by what is honoured, and by nothing else."""
    read = row.support in (Support.HONOURED, Support.PARTLY)
    if not row.field.endswith(BY_OTHERS):
        assert (of_node(row) != of_node(row, told=False)) is read
    assert [asked.row for asked in in_node({row.field: row.example}, {})] == ([row] if row.warns else [])


@pytest.mark.parametrize("row", of(Surface.POD_LABEL) + of(Surface.POD_ANNOTATION), ids=name)
def test_a_pods_words_ask_for_nothing_on_a_node(row: CoverageRow) -> None:
    """A Node that bears them by mistake is not told about what pods may not have."""
    own = {node.field for node in of(Surface.NODE)}
    assert row.field in own or in_node({row.field: str(row.example)}, {row.field: str(row.example)}) == ()


def scheduler(row: CoverageRow, told: bool = True) -> dict[str, str]:
    plugin, _, arg = row.field.replace("*", "other").partition(".")
    args = {arg: row.example} if told else {}
    profiles_ = [{"pluginConfig": [{"name": plugin, "args": {"apiVersion": "x", "kind": "y", **args}}]}]
    document = {"kind": "KubeSchedulerConfiguration", "profiles": profiles_}
    return {"koord-scheduler-config": msgspec.json.encode(document).decode()}


@pytest.mark.parametrize("row", of(Surface.SCHEDULER), ids=name)
def test_arguments_of_the_scheduler(row: CoverageRow) -> None:
    """What the scheduler reads differs by what is honoured; what is not warns."""
    honoured = row.support is Support.HONOURED
    read = schedulerconfig.read
    assert (read(scheduler(row)).profiles != read(scheduler(row, told=False)).profiles) is honoured
    assert [asked.row for asked in in_scheduler_config(scheduler(row))] == ([] if honoured else [row])


def test_kinds_are_installed_or_not() -> None:
    """A kind that is honoured has a definition in deploy/; one that is not has none, so that kubectl refuses it."""
    installed = {
        found[1]
        for file in (ROOT / "deploy/crds").rglob("*.yaml")
        for found in re.finditer(r"^    kind: (\w+)$", file.read_text(), re.MULTILINE)
    }
    assert {"NodeSLO", "PodGroup"} <= installed
    for row in of(Surface.KIND):
        assert (row.field in installed) is (row.support is Support.HONOURED), row.field


def test_the_report_is_read_back() -> None:
    """NodeMetric's status, by those who read it."""
    (row,) = [row for row in ROWS if row.field == "status"]
    assert node_metric(NodeMetric(Metadata("n"), status=row.example)).updated_seconds


@pytest.mark.parametrize("row", [row for row in ROWS if row.reader], ids=name)
def test_the_reader_knows_the_field(row: CoverageRow) -> None:
    """The file that a line names holds the field's last name, in our spelling or in theirs."""
    text = (ROOT / row.reader).read_text()
    last = re.split(r"[./\[]", row.field.rstrip("]"))[-1].removeprefix("load-estimated-")
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", last).lower()
    assert last in text or snake in text or row.field in text or row.surface is Surface.KIND


def test_every_line_says_what_it_must() -> None:
    """Each field once; honoured and partly honoured lines name a reader, others none."""
    names = [(row.surface, row.name) for row in ROWS]
    assert len(names) == len(set(names))
    for row in ROWS:
        reads = row.support in (Support.HONOURED, Support.PARTLY) and row.surface is not Surface.POD_RESOURCE
        assert bool(row.reader) is reads or row.surface is Surface.POD_RESOURCE, row.name
        assert row.consequence and not row.consequence.endswith(".") and not {"|", "\n"} & set(row.consequence), (
            row.name
        )
        assert row.source, row.name


SILENT: dict[str, tuple[str, Any]] = {
    "a section that is off": ("resource-qos-config", {"beClass": {"memoryQOS": {"enable": False, "wmarkRatio": 95}}}),
    "a section that is silent about it": ("resource-qos-config", {"beClass": {"cpuQOS": {"groupIdentity": -1}}}),
    "burst that is off": ("cpu-burst-config", {"policy": "none", "cpuBurstPercent": 1000}),
    "no policy": ("cpu-burst-config", {"cpuBurstPercent": 1000}),
    "a switch at 0": ("system-config", {"memcgReapBackGround": 0, "totalNetworkBandwidth": "0"}),
    "the default policies": ("resource-qos-config", {"policies": {"cpuPolicy": "groupIdentity", "netQOSPolicy": "tc"}}),
    "nothing": ("resource-qos-config", {}),
}


@pytest.mark.parametrize(("key", "fields"), SILENT.values(), ids=SILENT)
def test_what_is_off_asks_for_nothing(key: str, fields: Any) -> None:
    """A default that somebody wrote down needs no warning."""
    assert in_config(config(key, fields)) == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"clusterStrategy": 3, "nodeStrategies": {"a": 1}}', "[" * 5000])
def test_what_cannot_be_read_asks_for_nothing(text: str) -> None:
    """Others say what is wrong with it."""
    source = ConfigMap(Metadata("slo-controller-config"), {"resource-qos-config": text, "cpu-burst-config": text})
    assert in_config(source) == in_config(source, {"a": "b"}) == ()
    assert in_node_slo(NodeSLO(Metadata("n"), {"resourceQOSStrategy": text, "hostApplications": text})) == ()
    assert in_scheduler_config({"a": text}) == ()
    assert in_profile(ClusterColocationProfile(Metadata("a"), {"labels": text, "patch": text, "qosClass": 3})) == ()


def test_places_are_counted() -> None:
    """Many places of one field are one sentence; letters of names may be upper or lower, as Go reads them."""
    fields = {"LSClass": {"ResctrlQOS": {"Enable": True}}, "beClass": {"resctrlQOS": {"enable": True}}}
    (asked,) = in_config(config("resource-qos-config", fields))
    told = sentence("ConfigMap a/b", asked)
    assert told.startswith(
        "ConfigMap a/b: nothing acts on resource-qos-config.clusterStrategy.LSClass.ResctrlQOS (and 1 more)"
    )


def test_entries_of_other_nodes_are_not_asked_for() -> None:
    """Of one node only what holds there."""
    entry = {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}, "schedFeatures": {"ID_ABSOLUTE_EXPEL": True}}
    text = msgspec.json.encode({"nodeStrategies": [entry]}).decode()
    source = ConfigMap(Metadata("slo-controller-config"), {"system-config": text})
    assert in_config(source, {"pool": "b"}) == ()
    for asked in (in_config(source), in_config(source, {"pool": "a"})):
        assert asked[0].places == ("system-config.nodeStrategies[0].schedFeatures",)


def test_a_strategy_of_a_host_application() -> None:
    """The one list among the sections, under its own name in a NodeSLO."""
    spec = {"hostApplications": [{"name": "nginx", "strategy": {"a": 1}}]}
    places = [asked.places for asked in in_node_slo(NodeSLO(Metadata("n"), spec))]
    assert places == [("spec.hostApplications[0]",), ("spec.hostApplications[0].strategy",)]


@pytest.mark.parametrize("policy", ["none", '{"policy": "none"}'])
def test_a_pod_that_switches_off(policy: str) -> None:
    """It asks for what is the case."""
    metadata = Metadata("p", annotations={"koordinator.sh/cpuBurst": policy, "koordinator.sh/memoryQOS": policy})
    assert in_pod(metadata, PodSpec()) == ()


def test_gang_words_are_those_of_the_reader() -> None:
    """The table's rows of gangs are all that the reader knows, and no more."""
    known = {
        value for key, value in vars(membership).items() if key.startswith("ANNOTATION_") and isinstance(value, str)
    }
    honoured = {row.field for row in of(Surface.GANG) if row.support is Support.HONOURED}
    assert known <= honoured


def of_one_node(
    *, config_map: ConfigMap | None = None, spec: Any = None, evicts: bool = True, **words: Any
) -> tuple[str, ...]:
    slo = None if spec is None else NodeSLO(Metadata("n"), spec)
    sources = nodesettings.Sources(Node("n", **words), config_map, slo)
    documents, faults = nodesettings.read(sources)
    assert faults == ()
    return unmet(sources, documents, DEFAULTS, evicts=evicts)


def test_what_one_node_is_asked_in_vain() -> None:
    """Each field once, though the NodeSLO is made of the ConfigMap; what other nodes are asked does not count."""
    entry = {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}, "schedFeatures": {"ID_ABSOLUTE_EXPEL": True}}
    system = {"clusterStrategy": {"schedFeatures": {}}, "nodeStrategies": [entry]}
    qos = {"beClass": {"networkQOS": {"enable": True}}}
    data = {"system-config": system, "resource-qos-config": {"clusterStrategy": qos}}
    texts = {key: msgspec.json.encode(value).decode() for key, value in data.items()}
    source = ConfigMap(Metadata("slo-controller-config", "koordinator-system"), texts)
    assert of_one_node(config_map=source, spec={"resourceQOSStrategy": qos}) == (
        "resource-qos-config.*Class.networkQOS",
    )
    assert of_one_node(config_map=source, labels={"pool": "a"}) == (
        "resource-qos-config.*Class.networkQOS",
        "system-config.schedFeatures",
    )
    assert of_one_node(labels={"node.koordinator.sh/numa-topology-policy": "SingleNUMANode"}) == (
        "node.koordinator.sh/numa-topology-policy",
    )
    assert of_one_node() == ()


def test_a_rule_that_came_past_admission() -> None:
    """The agent switches it off, and the node's condition says why; not where nothing is evicted at all."""
    threshold = {"cpuEvictBESatisfactionLowerPercent": 40}
    (told,) = of_one_node(spec={"resourceUsedThresholdWithBE": threshold})
    assert told.startswith("cpuEvictBESatisfactionLowerPercent: is 40 without cpuEvictBESatisfactionUpperPercent")
    assert of_one_node(spec={"resourceUsedThresholdWithBE": threshold}, evicts=False) == ()
    over = config("resource-threshold-config", {"cpuEvictBESatisfactionUpperPercent": 80})
    assert of_one_node(config_map=over, spec={"resourceUsedThresholdWithBE": threshold}) == ()


UNMET = {
    "scheduling.koordinator.sh/": "numa-topology-spec reservation-affinity reservation-owners "
    "exact-match-reservation scheduling-hint device-allocate-hint device-joint-allocate gpu-partition-spec "
    "preemption-policy disable-preemptible reservation-ignored operating-mode",
    "gang.scheduling.koordinator.sh/": "timeout",
}
"""As Koordinator writes them (apis/extension), not as the table does."""


@pytest.mark.parametrize("key", [prefix + name for prefix, names in UNMET.items() for name in names.split()])
def test_what_pods_ask_for_in_vain_is_known_by_its_name(key: str) -> None:
    assert any(row.field == key for row in ROWS)

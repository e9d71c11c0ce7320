"""Documents are refused for what their readers would refuse, and warned of for what looks like a slip."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admission_builders import Cluster
from document_builders import checked, cluster, config

from admission.check_result import CheckResult
from admission.documents import check
from kube.dialects.unserved import KINDS as UNSERVED_KINDS
from kube.dialects.unserved import UnservedKind


def test_other_config_maps_are_nobody_s_business() -> None:
    """Whatever they hold."""
    assert checked(config("other", colocation_config="{")) == CheckResult()


SLO_BAD: dict[str, tuple[Any, str]] = {
    "spec": ([], "spec"),
    "threshold": ({"resourceUsedThresholdWithBE": {"cpuSuppressThresholdPercent": -1}}, "cpuSuppressThresholdPercent"),
    "eviction": ({"resourceUsedThresholdWithBE": {"allocatableEvictPriorityThreshold": 8000}}, "is 8000"),
    "qos": ({"resourceQOSStrategy": {"lsClass": {"memoryQOS": {"wmarkScalePermill": 0}}}}, "wmarkScalePermill: is 0"),
    "burst": ({"cpuBurstStrategy": {"policy": "x"}}, "cpuBurstStrategy.policy"),
    "system": ({"systemStrategy": {"minFreeKbytesFactor": 0}}, "systemStrategy.minFreeKbytesFactor: is 0"),
    "hosts": ({"hostApplications": [{"name": "a/b"}]}, "hostApplications[0].name"),
}


@pytest.mark.parametrize(("spec", "words"), SLO_BAD.values(), ids=SLO_BAD)
def test_node_slo(spec: Any, words: str) -> None:
    """Each section by its own reader."""
    (refusal,) = checked(
        msgspec.json.encode({"metadata": {"name": "n"}, "spec": spec}), "NodeSLO", "slo.koordinator.sh"
    ).refusals
    assert words in refusal


def test_good_node_slo() -> None:
    """Silent sections are fine."""
    raw = b'{"metadata":{"name":"n"},"spec":{"cpuBurstStrategy":null,"extensions":{}}}'
    assert checked(raw, "NodeSLO", "slo.koordinator.sh") == CheckResult()


def test_kinds_that_nobody_checks() -> None:
    """None, so that the answer can say so."""
    assert check("", "Service", b"{}", None, Cluster()) is None


@pytest.mark.parametrize("kind", [("", "ConfigMap"), ("slo.koordinator.sh", "NodeSLO")])
def test_objects_that_cannot_be_read(kind: tuple[str, str]) -> None:
    """A wrong type is a refusal with the field, never an error of ours."""
    found = check(*kind, b'{"metadata":{"name":1,"labels":5}}', None, Cluster())
    assert found is not None and len(found.refusals) == 1


UNMET: dict[str, tuple[str, str, bytes, str]] = {
    "settings": (
        "",
        "ConfigMap",
        config(**cluster("system_config", schedFeatures={"ID_ABSOLUTE_EXPEL": True})),
        "system-config.clusterStrategy.schedFeatures yet",
    ),
    "a NodeSLO": (
        "slo.koordinator.sh",
        "NodeSLO",
        b'{"metadata":{"name":"n"},"spec":{"resourceQOSStrategy":{"beClass":{"resctrlQOS":{"enable":true}}}}}',
        "NodeSLO n: nothing acts on spec.resourceQOSStrategy.beClass.resctrlQOS yet",
    ),
    "a profile": (
        "config.koordinator.sh",
        "ClusterColocationProfile",
        b'{"metadata":{"name":"p"},"spec":{"labels":{"quota.scheduling.koordinator.sh/tree-id":"a"}}}',
        "ClusterColocationProfile p: nothing acts on spec.labels[quota.scheduling.koordinator.sh/tree-id] yet",
    ),
    "a PodGroup": (
        "scheduling.sigs.k8s.io",
        "PodGroup",
        b'{"metadata":{"name":"g","namespace":"d"},"spec":{"minMember":2,"minResources":{"cpu":"4"}}}',
        "PodGroup d/g: nothing acts on spec.minResources: ",
    ),
    "a PodGroup's annotation that cannot be read": (
        "scheduling.sigs.k8s.io",
        "PodGroup",
        b'{"metadata":{"name":"g","namespace":"d","annotations":{"gang.scheduling.koordinator.sh/groups":"["}}}',
        "PodGroup d/g: metadata.annotations[gang.scheduling.koordinator.sh/groups] is '[', which cannot be read: the gang",
    ),
    "the scheduler's configuration": (
        "",
        "ConfigMap",
        config(
            "koord-scheduler-config",
            a={
                "kind": "KubeSchedulerConfiguration",
                "profiles": [{"pluginConfig": [{"name": "ElasticQuota", "args": {"a": 1}}]}],
            },
        ),
        "koord-scheduler-config: nothing acts on pluginConfig[ElasticQuota].args.a yet",
    ),
}


@pytest.mark.parametrize(("group", "kind", "raw", "words"), UNMET.values(), ids=UNMET)
def test_what_nobody_acts_on_is_told(group: str, kind: str, raw: bytes, words: str) -> None:
    """Accepted, with one sentence."""
    found = checked(raw, kind, group)
    (told,) = found.warnings
    assert found.refusals == () and words in told


def test_a_node_slo_with_a_satisfaction_upside_down() -> None:
    """Refused as in the ConfigMap."""
    fields = {"cpuEvictBESatisfactionLowerPercent": 40}
    slo = {"metadata": {"name": "n"}, "spec": {"resourceUsedThresholdWithBE": fields}}
    (refusal,) = checked(msgspec.json.encode(slo), "NodeSLO", "slo.koordinator.sh").refusals
    assert refusal.startswith("NodeSLO n: spec.resourceUsedThresholdWithBE.cpuEvictBESatisfactionLowerPercent: is 40")


@pytest.mark.parametrize("kind", UNSERVED_KINDS, ids=lambda kind: kind.definition)
def test_kinds_that_are_kept_and_not_acted_upon(kind: UnservedKind) -> None:
    """Whatever is in them; nothing is refused."""
    raw = msgspec.json.encode({"metadata": {"name": "a", "namespace": "ns"}, "spec": {"anything": [1]}})
    found = checked(raw, kind.kind, kind.group)
    (told,) = found.warnings
    assert not found.refusals and told.startswith(f"{kind.kind} ns/a: nothing acts on {kind.kind} of {kind.group} yet:")


def test_a_job_that_names_a_queue() -> None:
    """Suspended as Kueue's guide has it, nothing resumes it."""
    labels = {"kueue.x-k8s.io/queue-name": "team-a"}
    job = {"metadata": {"name": "j", "namespace": "ns", "labels": labels}, "spec": {"suspend": True}}
    held, queue = checked(msgspec.json.encode(job), "Job", "batch").warnings
    assert held.startswith("Job ns/j: spec.suspend is true, and it waits until its LocalQueue admits it")
    assert "metadata.labels[kueue.x-k8s.io/queue-name]=team-a" in queue
    plain = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"suspend": True}}
    assert checked(msgspec.json.encode(plain), "Job", "batch") == CheckResult()

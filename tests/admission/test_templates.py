"""Whoever writes a controller of pods is told what its pods would be told: they reach nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any

import msgspec
import pytest
import yaml
from admission_builders import BATCH, BATCH_SPEC, Cluster, profile

from admission.core.mutate import MutationPolicy
from admission.core.validate import PodRules
from admission.reviewer import Path, Reviewer, read
from embedded.apiserver.cel.match_conditions import programs
from embedded.apiserver.cel.variables import EVALUATED
from kube.dialects.coverage.rows import Surface
from kube.dialects.coverage.table import ROWS

WEBHOOKS = File(__file__).parents[2] / "deploy/admission/webhooks.yaml"
LENT = {"kubernetes.io/batch-cpu": "1k", "kubernetes.io/batch-memory": "1Gi"}
BOTH = {"requests": LENT, "limits": LENT}
KINDS = {
    "Deployment": ("apps", "spec.template"),
    "DaemonSet": ("apps", "spec.template"),
    "StatefulSet": ("apps", "spec.template"),
    "Job": ("batch", "spec.template"),
    "CronJob": ("batch", "spec.jobTemplate.spec.template"),
}


def template(
    labels: Mapping[str, str] | None = None, annotations: Any = None, resources: Any = None, **spec: Any
) -> dict[str, Any]:
    metadata = {"labels": {"app": "a", **(labels or {})}, **({"annotations": annotations} if annotations else {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "resources": resources or {}}], **spec}}


def of(kind: str, pods: Any, name: str = "report") -> dict[str, Any]:
    inner: Any = pods
    for key in reversed(KINDS[kind][1].split(".")):
        inner = {key: inner}
    return {"apiVersion": f"{KINDS[kind][0]}/v1", "kind": kind, "metadata": {"name": name}, **inner}


def told(source: Mapping[str, Any], cluster: Cluster | None = None, namespace: str = "batch") -> list[str]:
    group, kind = str(source["apiVersion"]).removesuffix("/v1"), source["kind"]
    asked = {"uid": "u", "kind": {"group": group, "version": "v1", "kind": kind}, "operation": "CREATE"}
    asked |= {"namespace": namespace, "object": source}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    reviewer = Reviewer(cluster or Cluster(), MutationPolicy(), PodRules(), draw=lambda: 50)
    answer = msgspec.json.decode(reviewer.answer(Path.VALIDATE_OBJECT, read(msgspec.json.encode(review))).encoded())
    assert answer["response"]["allowed"]
    found: list[str] = answer["response"].get("warnings", [])
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_pods_ask_for_in_vain(kind: str) -> None:
    """The object, and the field inside its template."""
    (found,) = told(of(kind, template(annotations={"koordinator.sh/blkioQOS": '{"blocks": []}'})))
    place = f"{KINDS[kind][1]}.metadata.annotations[koordinator.sh/blkioQOS]"
    assert found.startswith(f"{kind} batch/report: nothing acts on {place} yet: its disk I/O")
    assert told(of(kind, template())) == []


@pytest.mark.parametrize("key", ["kueue.x-k8s.io/queue-name", "scheduling.x-k8s.io/pod-group"])
def test_queues_and_gangs_of_other_systems(key: str) -> None:
    (found,) = told(of("Deployment", template({key: "team-a"})))
    assert found.startswith(f"Deployment batch/report: nothing acts on spec.template.metadata.labels[{key}]=team-a yet")


BATCH_POD: Mapping[str, Any] = {"priorityClassName": "koord-batch"}
ADVISED: dict[str, tuple[Any, list[str]]] = {
    "as it should be": (BOTH, []),
    "limits, which stand for requests": ({"limits": LENT}, []),
    "nothing": ({}, ["requests no", "limits no"]),
    "requests alone": ({"requests": LENT}, ["limits no"]),
    "less than its limit": (
        {"requests": {**LENT, "kubernetes.io/batch-cpu": "1"}, "limits": LENT},
        ["requests and limits unlike"],
    ),
}


@pytest.mark.parametrize("case", ADVISED)
def test_batch_pods_of_a_template(case: str) -> None:
    """As for a pod that the API server has filled in."""
    resources, expected = ADVISED[case]
    found = told(of("Job", template({"koordinator.sh/qosClass": "BE"}, resources=resources, **BATCH_POD)))
    assert len(found) == len(expected)
    assert all(
        words in line and line.startswith("Job batch/report: container main ")
        for words, line in zip(expected, found, strict=True)
    )


def test_resources_that_a_profile_renames() -> None:
    """What the pods will have counts, not what is written."""
    ordinary = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    batch = of("Deployment", template({"app-type": "batch"}, resources=ordinary))
    assert told(batch, Cluster(BATCH)) == []
    batch = of("Deployment", template({"app-type": "batch"}))
    assert [line.split(": ", 1)[0] for line in told(batch, Cluster(BATCH))] == ["Deployment batch/report"] * 2


def test_a_profile_that_takes_some_pods_is_left_out() -> None:
    """Nobody knows whether it takes the next one."""
    some = profile(**{**BATCH_SPEC, "probability": "99%"})
    assert told(of("Deployment", template({"app-type": "batch"})), Cluster(some)) == []


def test_pods_that_are_refused() -> None:
    """The object itself is let in, as Kubernetes does it; an Event of the controller would be all one sees."""
    (found,) = told(of("Deployment", template({"koordinator.sh/qosClass": "BE"})))
    assert found.startswith(
        "Deployment batch/report: its pods are refused: metadata.labels[koordinator.sh/qosClass]=BE"
    )
    (gone,) = told(of("Deployment", template({"app-type": "batch"})), Cluster(profile(priorityClassName="gone")))
    assert "its pods are refused" in gone and "create PriorityClass gone" in gone
    (typo,) = told(of("Deployment", template({"koordinator.sh/qosClass": "BE"}, priorityClassName="koord-btch")))
    assert typo.endswith(
        "its pods are refused: no PriorityClass with name koord-btch was found; create it, or correct "
        "spec.template.spec.priorityClassName"
    )
    wrong = template(resources={"requests": {"kubernetes.io/batch-cpu": "a lot"}})
    (wrong_amount,) = told(of("Deployment", wrong))
    assert "its pods are refused" in wrong_amount


def test_system_namespaces_are_left_alone() -> None:
    source = of("DaemonSet", template({"koordinator.sh/qosClass": "BE"}))
    assert told(source, namespace="kube-system") == []


def test_a_template_that_is_none() -> None:
    """The API server says what is wrong with it."""
    for pods in ({}, {"spec": {}}, {"metadata": {}}, {"spec": [1]}, [], "a", None, {"metadata": [], "spec": {"a": 1}}):
        assert told(of("Deployment", pods)) == []
    assert told({**of("Deployment", template()), "metadata": []}) == []


def hook_named(name: str) -> dict[str, Any]:
    (hook,) = [each for each in list(yaml.safe_load_all(WEBHOOKS.read_text()))[1]["webhooks"] if each["name"] == name]
    return dict(hook)


def sending(name: str) -> Callable[..., bool]:
    """Whether the API server asks admission about an object that is created, or changed."""
    compiled = programs(hook_named(name)["matchConditions"])

    def sent(source: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> bool:
        names = {"object": source, "oldObject": old, "request": {"operation": "UPDATE" if old else "CREATE"}}
        return all(each.value(EVALUATED.activation(names)) for each in compiled)

    return sent


@pytest.fixture(scope="module")
def sends() -> Callable[..., bool]:
    """In namespaces that do not ask for colocation."""
    return sending("other.templates.sublet.dev")


def asking() -> dict[str, dict[str, Any]]:
    """A template for each word of pods that draws a warning."""
    found = {}
    for row in ROWS:
        key = row.field.replace("*", "x")
        if row.warns and row.surface is Surface.POD_LABEL:
            found[row.name] = template({key: row.example})
        elif row.warns and row.surface in (Surface.POD_ANNOTATION, Surface.GANG) and "/" in key:
            found[row.name] = template(annotations={key: row.example})
        elif row.warns and row.surface is Surface.POD_RESOURCE:
            found[row.name] = template(resources={"limits": {key: "1"}})
    return found


ASKING = asking()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ASKING)
def test_the_webhook_is_asked(name: str, kind: str, sends: Callable[..., bool]) -> None:
    """About each word that draws a warning; and it does."""
    source = of(kind, ASKING[name])
    assert sends(source)
    assert told(source)


@pytest.mark.parametrize("kind", KINDS)
def test_the_webhook_is_not_asked(kind: str, sends: Callable[..., bool]) -> None:
    """About ordinary pods, and about changes outside of the template."""
    assert not sends(of(kind, template(resources={"requests": {"cpu": "1", "nvidia.com/gpu": "1"}})))
    batch = of(kind, template({"koordinator.sh/qosClass": "BE"}))
    assert sends(batch, of(kind, template()))
    assert not sends(batch, {**batch, "metadata": {"name": "before"}})


MANY = {f"example.com/{number}": "" for number in range(101)}
LARGE: dict[str, dict[str, Any]] = {
    "labels": template(MANY),
    "annotations": template(annotations=MANY),
    "containers": {"spec": {"containers": [{"name": f"c{number}"} for number in range(101)]}},
    "init containers": {
        "spec": {"containers": [], "initContainers": [{"name": f"c{number}"} for number in range(101)]}
    },
    "resources": template(resources={"requests": dict.fromkeys(MANY, "1")}),
}


@pytest.mark.parametrize("each", LARGE.values(), ids=LARGE)
def test_what_is_large_is_not_gone_through(each: dict[str, Any], sends: Callable[..., bool]) -> None:
    """CEL's time grows with the square of it: 20,000 labels cost an API server 13 s. Admission looks at it instead."""
    assert sends(of("Deployment", each))
    assert sending("other.pods.sublet.dev")({"metadata": {}, **each})


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_namespace_of_batch_work_the_webhook_is_asked_about_all(kind: str) -> None:
    """A profile may take pods by a label that says nothing itself, as in the guides; each namespace has one such hook."""
    sends = sending("colocation.templates.sublet.dev")
    by_profile = of(kind, template({"app-type": "batch"}))
    assert sends(by_profile) and sends(by_profile, of(kind, template()))
    assert not sends(by_profile, {**by_profile, "metadata": {"name": "before"}})
    assert len(told(by_profile, Cluster(BATCH))) == 2
    label = "koordinator.sh/enable-colocation"
    hooks = [hook_named(f"{which}.templates.sublet.dev") for which in ("colocation", "other")]
    operators = [
        [each["operator"] for each in hook["namespaceSelector"]["matchExpressions"] if each["key"] == label]
        for hook in hooks
    ]
    assert operators == [["In"], ["NotIn"]] and hooks[0]["rules"] == hooks[1]["rules"]

"""deploy/crds/optional/{volcano,kueue,sublet,koordinator,jobset}: what upstream's manifests say is kept, and what cannot be meant is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from embedded.apiserver.apiextensions.structural import schema_errors
from embedded.tests.apiserver.conftest import Api

CRDS = Path(__file__).parent.parent.parent / "deploy" / "crds" / "optional"
FOLDERS = ("volcano", "kueue", "sublet", "koordinator", "jobset")
Object = dict[str, Any]
DEFINITIONS = sorted(
    path for folder in FOLDERS for path in (CRDS / folder).glob("*.yaml") if path.stem != "kustomization"
)


def changed(body: Object, path: str, value: Any) -> Object:
    """A copy with the value at a dotted path; None takes it away."""
    first, _, rest = path.partition(".")
    if not rest:
        return {
            **{key: kept for key, kept in body.items() if key != first},
            **({} if value is None else {first: value}),
        }
    return {**body, first: changed(body.get(first, {}), rest, value)}


def queue(**spec: Any) -> Object:
    return {"apiVersion": "sublet.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "research"}, "spec": spec}


TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "image"}]}}


def sets(*names: str) -> Object:
    """A job of named sets."""
    pod_sets = [{"name": name, "replicas": 1, "template": TEMPLATE} for name in names]
    return changed(training("spec.template", None), "spec.podSets", pod_sets)


def training(path: str = "spec.jobType", value: Any = "PyTorchJob") -> Object:
    """A valid one, but for what is said."""
    replicas = {"minReplicas": 2, "maxReplicas": 4, "replicaResources": {"gpu": 8, "cpu": "32", "memory": "256Gi"}}
    spec = {
        "jobType": "PyTorchJob",
        "resources": replicas,
        "schedulingConfig": {"queue": "research"},
        "template": TEMPLATE,
    }
    whole = {"apiVersion": "sublet.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": "train"}, "spec": spec}
    return changed(whole, path, value)


def cluster_queue(**spec: Any) -> Object:
    version, kind = "kueue.x-k8s.io/v1beta1", "ClusterQueue"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "training-cluster-queue"}, "spec": spec}


def quotas(**limits: str) -> list[Object]:
    resources = [{"name": "cpu", "nominalQuota": 256, **limits}, {"name": "nvidia.com/gpu", "nominalQuota": "64"}]
    return [{"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [{"name": "a100", "resources": resources}]}]


def volcano_job(**spec: Any) -> Object:
    task = {"name": "worker", "replicas": 3, "template": {"spec": {"containers": [{"name": "main", "image": "image"}]}}}
    whole = {"minAvailable": 3, "queue": "training-queue", "tasks": [task], **spec}
    version = "batch.volcano.sh/v1alpha1"
    return {"apiVersion": version, "kind": "Job", "metadata": {"name": "distributed-training"}, "spec": whole}


def elastic_quota(**spec: Any) -> Object:
    version, metadata = "scheduling.sigs.k8s.io/v1alpha1", {"name": "team"}
    return {"apiVersion": version, "kind": "ElasticQuota", "metadata": metadata, "spec": spec}


def quota_profile(**spec: Any) -> Object:
    version, metadata = "quota.koordinator.sh/v1alpha1", {"name": "team"}
    return {"apiVersion": version, "kind": "ElasticQuotaProfile", "metadata": metadata, "spec": spec}


SUBLET_QUEUES, JOBS = "/apis/sublet.dev/v1alpha1/queues", "/apis/sublet.dev/v1alpha1/namespaces/default/trainingjobs"
QUOTAS = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas"
QUOTA_PROFILES = "/apis/quota.koordinator.sh/v1alpha1/namespaces/default/elasticquotaprofiles"
CLUSTER_QUEUES = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues"
VOLCANO_JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
AMOUNTS = {"gpu": 16, "cpu": "128", "memory": "512Gi"}
ELASTIC = {"enabled": True, "minWorkers": 2, "maxWorkers": 8}
TAKEN = {
    "a queue that says nothing": (SUBLET_QUEUES, queue()),
    "a queue with all three amounts": (
        SUBLET_QUEUES,
        queue(quota={"guaranteed": AMOUNTS, "soft": AMOUNTS, "hard": {"gpu": 64, "cpu": 512, "memory": "2Ti"}}),
    ),
    "the same amount, written otherwise": (
        SUBLET_QUEUES, queue(quota={"soft": {"cpu": "2000m"}, "hard": {"cpu": 2}}),
    ),
    "limits for some dimensions": (SUBLET_QUEUES, queue(quota={"soft": {"gpu": 8}, "hard": {"memory": "1Ti"}})),
    "a range of priorities": (SUBLET_QUEUES, queue(admissionControl={"priorityRange": {"min": 0, "max": 0}})),
    "any resource": (SUBLET_QUEUES, queue(quota={"hard": {"resources": {"kubernetes.io/batch-cpu": 64000, "a/b": "1"}}})),
    "what is borrowed and lent at most": (
        SUBLET_QUEUES, queue(borrowing={"limit": {"gpu": 2}}, lending={"limit": {"resources": {"a/b": 1}}}),
    ),
    "an order, a state, and who may use it": (
        SUBLET_QUEUES, queue(order="StrictFIFO", state="Hold", admissionControl={"namespaces": ["a", "b"]}),
    ),
    "a training job": (JOBS, training()),
    "without a ceiling": (JOBS, training("spec.resources.maxReplicas", None)),
    "a master and workers": (JOBS, sets("master", "worker")),
    "sets without resources": (JOBS, changed(sets("worker"), "spec.resources", None)),
    "all that is said besides": (
        JOBS,
        training("spec.checkpoint", {"url": "file:///c", "interval": "10m", "maxCheckpoints": 3}),
    ),
    "an elastic job": (JOBS, training("spec.elasticConfig", ELASTIC)),
    "the source's ClusterQueue": (
        CLUSTER_QUEUES,
        cluster_queue(cohort="ai-platform", namespaceSelector={}, resourceGroups=quotas(borrowingLimit="16")),
    ),
    "the source's Volcano job": (
        VOLCANO_JOBS,
        volcano_job(policies=[{"event": "PodEvicted", "action": "RestartJob"}], plugins={"ssh": [], "svc": [], "env": []}),
    ),
    "Koordinator's ElasticQuota": (QUOTAS, elastic_quota(min={"cpu": 10}, max={"cpu": "40", "memory": "40Gi"})),
    "Koordinator's ElasticQuotaProfile": (
        QUOTA_PROFILES, quota_profile(quotaName="q", nodeSelector={"matchLabels": {"a": "b"}}, resourceRatio="0.9"),
    ),
    "a field of a newer Volcano": (VOLCANO_JOBS, volcano_job(somethingNew={"a": 1})),
}  # fmt: skip
REFUSED = {
    "its own parent": (SUBLET_QUEUES, queue(parent="research"), "a queue cannot be its own parent"),
    "no weight": (SUBLET_QUEUES, queue(weight=0), "spec.weight"),
    "guaranteed above hard": (
        SUBLET_QUEUES, queue(quota={"guaranteed": {"gpu": 3}, "hard": {"gpu": 2}}), "guaranteed.gpu must not exceed hard.gpu",
    ),
    "soft above hard, in other units": (
        SUBLET_QUEUES,
        queue(quota={"soft": {"memory": "1025Mi"}, "hard": {"memory": "1Gi"}}),
        "soft.memory must not exceed hard.memory",
    ),
    "guaranteed above soft": (
        SUBLET_QUEUES, queue(quota={"guaranteed": {"cpu": 2}, "soft": {"cpu": "1900m"}}), "guaranteed.cpu must not exceed",
    ),
    "less than nothing": (SUBLET_QUEUES, queue(quota={"hard": {"cpu": "-1"}}), "hard.cpu must not be negative"),
    "no amount": (SUBLET_QUEUES, queue(quota={"hard": {"cpu": "many"}}), "spec.quota.hard.cpu"),
    "from itself": (SUBLET_QUEUES, queue(borrowing={"allowedQueues": ["research"]}), "cannot borrow from itself"),
    "a debt": (SUBLET_QUEUES, queue(borrowing={"maxBorrowRatio": -0.5}), "spec.borrowing.maxBorrowRatio"),
    "no amount of any resource": (
        SUBLET_QUEUES, queue(quota={"soft": {"resources": {"a/b": "many"}}}), "spec.quota.soft.resources.a/b",
    ),
    "an order that is none": (SUBLET_QUEUES, queue(order="fifo"), "spec.order"),
    "a state that is none": (SUBLET_QUEUES, queue(state="Ajar"), "spec.state"),
    "a namespace that is none": (SUBLET_QUEUES, queue(admissionControl={"namespaces": ["A"]}), "spec.admissionControl.names"),
    "an ElasticQuota of no amount": (QUOTAS, elastic_quota(min={"cpu": "many"}), "spec.min.cpu"),
    "a profile without nodes": (QUOTA_PROFILES, quota_profile(quotaName="q"), "spec.nodeSelector"),
    "an empty range": (
        SUBLET_QUEUES, queue(admissionControl={"priorityRange": {"min": 2, "max": 1}}), "min must not exceed max",
    ),
    "a grace of two apples": (SUBLET_QUEUES, queue(preemption={"gracePeriod": "2 apples"}), "spec.preemption.gracePeriod"),
    "fewer at most than at least": (JOBS, training("spec.resources.maxReplicas", 1), "maxReplicas must not be below minReplicas"),
    "no replica": (JOBS, training("spec.resources.minReplicas", 0), "spec.resources.minReplicas"),
    "a framework nobody knows": (JOBS, training("spec.jobType", "AbacusJob"), "spec.jobType"),
    "a replica of nothing": (JOBS, training("spec.resources.replicaResources", {}), "a replica asks for something"),
    "no cpu at all": (JOBS, training("spec.resources.replicaResources.cpu", "0"), "cpu must be above 0"),
    "elastic without bounds": (JOBS, training("spec.elasticConfig", {"enabled": True}), "says minWorkers and maxWorkers"),
    "elastic upside down": (
        JOBS, training("spec.elasticConfig", {**ELASTIC, "maxWorkers": 1}), "minWorkers must not exceed maxWorkers",
    ),
    "a template of nothing": (JOBS, training("spec.template", {}), "spec.template.spec"),
    "a template without containers": (
        JOBS, training("spec.template", {"spec": {"containers": []}}), "spec.template.spec.containers",
    ),
    "neither template nor sets": (JOBS, training("spec.template", None), "give a template for pods that are alike, or podSets"),
    "template and sets": (JOBS, changed(sets("worker"), "spec.template", TEMPLATE), "and not both"),
    "how many pods": (JOBS, training("spec.resources.minReplicas", None), "resources.minReplicas says how many pods"),
    "two sets of one name": (JOBS, sets("worker", "worker"), "spec.podSets[1]"),
    "a set that has none": (JOBS, changed(sets("worker"), "spec.podSets", []), "spec.podSets"),
    "elastic without workers": (
        JOBS, changed(sets("master"), "spec.elasticConfig", ELASTIC), "the pod set that grows is called worker",
    ),
    "a negative budget": (JOBS, training("spec.maxRetry", -1), "spec.maxRetry"),
    "a negative time to live": (JOBS, training("spec.ttlSecondsAfterFinished", -1), "spec.ttlSecondsAfterFinished"),
    "a checkpoint nowhere": (JOBS, training("spec.checkpoint", {"interval": "1m"}), "spec.checkpoint.url"),
    "a wait that is no time": (JOBS, training("spec.schedulingConfig.maxWaitTime", "soon"), "schedulingConfig.maxWaitTime"),
    "borrowing without a cohort": (
        CLUSTER_QUEUES, cluster_queue(resourceGroups=quotas(borrowingLimit="16")), "borrowingLimit must be nil",
    ),
    "lending without a cohort": (
        CLUSTER_QUEUES, cluster_queue(resourceGroups=quotas(lendingLimit="16")), "lendingLimit must be nil",
    ),
    "a resource that no flavor has": (
        CLUSTER_QUEUES,
        cluster_queue(resourceGroups=[{**quotas()[0], "coveredResources": ["cpu", "memory", "nvidia.com/gpu"]}]),
        "same number of resources",
    ),
    "a Volcano job without tasks": (VOLCANO_JOBS, volcano_job(tasks=[]), "spec.tasks"),
    "an exit code that is none": (
        VOLCANO_JOBS, volcano_job(policies=[{"exitCode": 0, "action": "RestartJob"}]), "exitCode 0 is no failure",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def api() -> Api:
    made = Api()
    for path in DEFINITIONS:
        made.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(path.read_text()))
    return made


@pytest.mark.parametrize(("url", "body"), TAKEN.values(), ids=TAKEN)
def test_what_is_meant_is_taken(api: Api, url: str, body: Object) -> None:
    """And stored as it was written: no field is lost."""
    code, answer = api.call("POST", f"{url}?dryRun=All", body)
    assert code == 201, answer
    assert body["spec"].keys() <= answer["spec"].keys()


@pytest.mark.parametrize(("url", "body", "told"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused(api: Api, url: str, body: Object, told: str) -> None:
    """With the field or the rule in the answer."""
    code, answer = api.call("POST", f"{url}?dryRun=All", body)
    assert code == 422 and told in answer["message"], answer


def test_a_training_job_keeps_its_framework(api: Api) -> None:
    """What runs cannot become something else."""
    api.post(JOBS, training())
    code, answer = api.patch(f"{JOBS}/train", {"spec": {"jobType": "MPIJob"}})
    assert code == 422 and "jobType is immutable" in answer["message"]


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_field_is_described(path: Path) -> None:
    """`kubectl explain` has an answer everywhere."""
    for version in yaml.safe_load(path.read_text())["spec"]["versions"]:
        top = version["schema"]["openAPIV3Schema"]
        wrong = [where for where, schema in _fields(top, "") if "description" not in schema]
        assert wrong == [] and "description" in top


KUEUE = [path for path in DEFINITIONS if path.parent.name == "kueue"]


@pytest.mark.parametrize("path", KUEUE, ids=lambda path: path.stem)
def test_kueues_versions_have_one_schema(path: Path) -> None:
    """Whatever version an object is written and read in, no field of it is lost: the scheduler reads both spellings."""
    versions = yaml.safe_load(path.read_text())["spec"]["versions"]
    assert all(version["schema"] == versions[0]["schema"] and version["served"] for version in versions)
    assert [version["name"] for version in versions if version["storage"]] == [versions[0]["name"]]


def _fields(schema: Object, where: str) -> list[tuple[str, Object]]:
    own = {f"{where}.{name}": each for name, each in schema.get("properties", {}).items()}
    shown = [(name, each) for name, each in own.items() if name not in (".apiVersion", ".kind", ".metadata")]
    inner = [each for each in (schema.get("items"), schema.get("additionalProperties")) if each]
    return [
        *shown,
        *(f for name, each in own.items() for f in _fields(each, name)),
        *(f for each in inner for f in _fields(each, where)),
    ]


def test_the_definitions_are_structural() -> None:
    """A real cluster accepts them, too."""
    found = 0
    for path in sorted(CRDS.parent.rglob("*.yaml")):
        for body in yaml.safe_load_all(path.read_text()):
            for version in (body.get("spec") or {}).get("versions") or ():
                found += 1
                assert schema_errors("s", version["schema"]["openAPIV3Schema"]) == []
    assert found >= 4

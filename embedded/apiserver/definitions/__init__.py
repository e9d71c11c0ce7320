"""The schemas of the built-in types, in the form of OpenAPI v3: what `kubectl explain`, strict decoding, merging and
field ownership go by.

Custom types bring a schema of their own in their definition; `schema_of` gives either.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from pathlib import Path

from embedded.apiserver.apimachinery.objects import Object, decode_object
from embedded.apiserver.apimachinery.resource_types import ResourceType

DATA = Path(__file__).parent / "kubernetes.json.z"
REFERENCE = "#/components/schemas/"
_CORE = "io.k8s.api.core.v1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
# Which definitions are kept: group/version → the names of kinds it serves and speaks.
ROOTS: dict[str, tuple[str, ...]] = {
    "v1": tuple(
        _CORE + kind
        for kind in (
            "Binding",
            "ConfigMap",
            "Endpoints",
            "Event",
            "Namespace",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        )
    ),
    "apps/v1": tuple(
        f"io.k8s.api.apps.v1.{kind}"
        for kind in ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")
    ),
    "authentication.k8s.io/v1": tuple(
        f"io.k8s.api.authentication.v1.{kind}" for kind in ("SelfSubjectReview", "TokenRequest", "TokenReview")
    ),
    "batch/v1": ("io.k8s.api.batch.v1.Job", "io.k8s.api.batch.v1.CronJob"),
    "policy/v1": ("io.k8s.api.policy.v1.PodDisruptionBudget", "io.k8s.api.policy.v1.Eviction"),
    "scheduling.k8s.io/v1": ("io.k8s.api.scheduling.v1.PriorityClass",),
    "scheduling.k8s.io/v1beta1": (
        "io.k8s.api.scheduling.v1beta1.PodGroup",
        "io.k8s.api.scheduling.v1beta1.Workload",
    ),
    "storage.k8s.io/v1": ("io.k8s.api.storage.v1.StorageClass",),
    "coordination.k8s.io/v1": ("io.k8s.api.coordination.v1.Lease",),
    "events.k8s.io/v1": ("io.k8s.api.events.v1.Event",),
    "authorization.k8s.io/v1": tuple(
        f"io.k8s.api.authorization.v1.{kind}"
        for kind in (
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        )
    ),
    "discovery.k8s.io/v1": ("io.k8s.api.discovery.v1.EndpointSlice",),
    "networking.k8s.io/v1": ("io.k8s.api.networking.v1.Ingress", "io.k8s.api.networking.v1.NetworkPolicy"),
    "rbac.authorization.k8s.io/v1": tuple(
        f"io.k8s.api.rbac.v1.{kind}" for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    ),
    "autoscaling/v1": ("io.k8s.api.autoscaling.v1.Scale",),
    "admissionregistration.k8s.io/v1": (
        "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy",
        "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding",
        "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    ),
    "apiextensions.k8s.io/v1": (_EXTENSIONS + "CustomResourceDefinition",),
    "meta.k8s.io/v1": (_META + "DeleteOptions", _META + "Status", _META + "ObjectMeta", _META + "ListMeta"),
}


@lru_cache(maxsize=1)
def definitions() -> dict[str, Object]:
    """Every kept definition by its name, such as `io.k8s.api.core.v1.Pod`. Not to be changed by its readers."""
    return decode_object(zlib.decompress(DATA.read_bytes()))


@lru_cache(maxsize=1)
def _by_kind() -> dict[tuple[str, str, str], str]:
    return {
        (kind["group"], kind["version"], kind["kind"]): name
        for name, schema in definitions().items()
        for kind in schema.get("x-kubernetes-group-version-kind") or ()
    }


def definition_name(group: str, version: str, kind: str) -> str | None:
    """The definition of a built-in kind, if there is one."""
    return _by_kind().get((group, version, kind))


def resolve(schema: Object) -> Object:
    """The schema itself, or what it refers to (`$ref`, or a single `allOf` around one)."""
    while True:
        if "allOf" in schema and len(schema["allOf"]) == 1 and "properties" not in schema:
            schema = schema["allOf"][0]
        elif "$ref" in schema:
            schema = definitions()[schema["$ref"].removeprefix(REFERENCE)]
        else:
            return schema


def schema_of(rtype: ResourceType) -> Object:
    """The resolved schema of a whole object of this type; empty where none is known."""
    if rtype.custom is not None:
        return rtype.custom.schema or {}
    name = definition_name(rtype.group, rtype.version, rtype.kind)
    return {} if name is None else definitions()[name]

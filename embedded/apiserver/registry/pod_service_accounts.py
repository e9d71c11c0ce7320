"""What a new pod gets from its service account: its token in every container, and its pull secrets.

As the ServiceAccount plugin of kube-apiserver does it, but for `kubernetes.io/enforce-mountable-secrets`, which is
deprecated: `plugin/pkg/admission/serviceaccount/admission.go`.
"""

from __future__ import annotations

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.generated_names import random_suffix
from embedded.apiserver.apimachinery.objects import Object, copy, dig, name_of, namespace_of
from embedded.apiserver.apimachinery.resource_types import NAMESPACES, PODS, SERVICE_ACCOUNTS
from embedded.apiserver.registry.stored_objects import StoredObjects
from embedded.apiserver.validation.pod_hosts import MIRROR

DEFAULT_ACCOUNT = "default"
AUTHORITY_MAP = "kube-root-ca.crt"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME = "kube-api-access-"
_TOKEN_SECONDS = 3607  # an hour and what marks it as asked for by nobody
_SOURCES = [
    {"serviceAccountToken": {"path": "token", "expirationSeconds": _TOKEN_SECONDS}},
    {"configMap": {"name": AUTHORITY_MAP, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {
        "downwardAPI": {
            "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
        }
    },
]


def admit_pod_account(stored: StoredObjects, pod: Object) -> None:
    """Give a pod what its account has for it, in place; raises 403 where there is no such account."""
    if MIRROR in (dig(pod, "metadata.annotations") or {}):
        _check_mirror(pod)
        return
    spec = pod["spec"]
    account = _account(stored, pod)
    if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
        _mount_token(spec)
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = copy({"all": account["imagePullSecrets"]})["all"]


def _account(stored: StoredObjects, pod: Object) -> Object:
    namespace, name = namespace_of(pod), pod["spec"]["serviceAccountName"]
    found = stored.find(SERVICE_ACCOUNTS, namespace, name)
    if found is None and name == DEFAULT_ACCOUNT and stored.find(NAMESPACES, "", namespace) is not None:
        # Upstream waits a second or two for the controller that makes it; nobody sees the difference.
        found = stored.create(SERVICE_ACCOUNTS, namespace, {"metadata": {"name": name}})
    if found is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise status.forbidden(PODS, name_of(pod), why)
    return found


def _check_mirror(pod: Object) -> None:
    """The API's picture of a pod that a node runs of its own accord has nothing that only the API could give."""
    spec = pod["spec"]
    volumes = spec.get("volumes") or ()
    sources = [source for volume in volumes for source in dig(volume, "projected.sources") or ()]
    if spec.get("serviceAccountName"):
        raise status.forbidden(PODS, name_of(pod), "a mirror pod may not reference service accounts")
    if any("secret" in each for each in (*volumes, *sources)) or any(map(_reads_secrets, _containers(spec))):
        raise status.forbidden(PODS, name_of(pod), "a mirror pod may not reference secrets")
    if any("serviceAccountToken" in source for source in sources):
        why = "a mirror pod may not use ServiceAccountToken volume projections"
        raise status.forbidden(PODS, name_of(pod), why)


def _reads_secrets(container: Object) -> bool:
    return any("secretRef" in each for each in container.get("envFrom") or ()) or any(
        dig(each, "valueFrom.secretKeyRef") for each in container.get("env") or ()
    )


def _containers(spec: Object) -> list[Object]:
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _mount_token(spec: Object) -> None:
    """Mount the token wherever nothing else is mounted in its place; again, it changes nothing."""
    volumes = spec.get("volumes") or []
    held = next((volume["name"] for volume in volumes if volume["name"].startswith(_VOLUME)), None)
    name = held or f"{_VOLUME}{random_suffix()}"
    needed = False
    for container in _containers(spec):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != MOUNT_PATH for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
            needed = True
    if needed and held is None:
        projected = copy({"defaultMode": 0o644, "sources": _SOURCES})
        spec["volumes"] = [*volumes, {"name": name, "projected": projected}]

"""Default values of built-in types. Applied before and again after admission, so each step only fills gaps."""

from base64 import b64encode
from collections.abc import Callable

from embedded.apiserver.apimachinery.objects import Object, copy, dig, ensure
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.registry.pod_service_accounts import DEFAULT_ACCOUNT
from embedded.apiserver.registry.workload_defaults import (
    default_daemon_set,
    default_deployment,
    default_replica_set,
    default_replication_controller,
    default_stateful_set,
)
from embedded.apiserver.validation.admission_policies import default_policy, default_policy_binding
from embedded.apiserver.validation.admission_webhooks import default_mutating, default_validating
from embedded.apiserver.validation.pod_hosts import MIRROR
from embedded.apiserver.validation.roles import default_binding


def apply_defaults(rtype: ResourceType, obj: Object) -> None:
    """Fill the gaps a real API server fills, in place."""
    default = _DEFAULTS.get(rtype.id)
    if default is not None:
        default(obj)


def _fill(target: Object, **values: object) -> None:
    for key, value in values.items():
        if target.get(key) in (None, ""):  # Go clients write an unset text as an empty one
            target[key] = value


def default_pod_spec(spec: Object) -> None:
    _fill(
        spec,
        restartPolicy="Always",
        dnsPolicy="ClusterFirst",
        schedulerName="default-scheduler",
        terminationGracePeriodSeconds=30,
    )
    spec.setdefault("securityContext", {})
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Object) -> None:
    image = container.get("image") or ""
    tag = image.rpartition("/")[2].partition(":")[2]
    floating = "@" not in image and tag in ("", "latest")
    _fill(
        container,
        imagePullPolicy="Always" if floating else "IfNotPresent",
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    container.setdefault("resources", {})
    for port in container.get("ports") or ():
        _fill(port, protocol="TCP")
    for variable in container.get("env") or ():
        _default_reference(variable.get("valueFrom") or {})
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (found := container.get(probe)) is not None:
            _fill(found, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
            _default_request(found)
    for moment in ("postStart", "preStop"):
        _default_request(dig(container, f"lifecycle.{moment}") or {})


def _default_request(handler: Object) -> None:
    if (request := handler.get("httpGet")) is not None:
        _fill(request, path="/", scheme="HTTP")


def _default_volume(volume: Object) -> None:
    if set(volume) == {"name"}:
        volume["emptyDir"] = {}
    for source in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 0o644)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    sources = dig(volume, "projected.sources") or ()
    for told in (volume.get("downwardAPI"), *(source.get("downwardAPI") for source in sources)):
        for item in (told or {}).get("items") or ():
            _default_reference(item)
    for source in sources:
        if (token := source.get("serviceAccountToken")) is not None:
            _fill(token, expirationSeconds=3600)


def _default_reference(holder: Object) -> None:
    """Of a variable or a file to a field of its pod."""
    if (reference := holder.get("fieldRef")) is not None:
        _fill(reference, apiVersion="v1")
    if (reference := holder.get("resourceFieldRef")) is not None:
        _fill(reference, divisor="0")


def _default_pod(pod: Object) -> None:
    spec = ensure(pod, "spec")
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    _default_account(pod)
    if spec.get("hostNetwork"):
        _default_host_ports(spec)
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or ():
            _request_limits(container["resources"])


def _default_account(pod: Object) -> None:
    """Under its name of today and its earlier one; mirror pods have none."""
    spec = pod["spec"]
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name or MIRROR not in (dig(pod, "metadata.annotations") or {}):
        spec["serviceAccountName"] = spec["serviceAccount"] = name or DEFAULT_ACCOUNT


def _default_host_ports(spec: Object) -> None:
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for port in container.get("ports") or ():
            _fill(port, hostPort=port["containerPort"])


def _request_limits(resources: Object) -> None:
    """A limit without a request asks for as much as it allows. Templates stay as written, only pods get this."""
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}


_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)


def _default_node(node: Object) -> None:
    status = ensure(node, "status")
    ensure(status, "daemonEndpoints").setdefault("kubeletEndpoint", {"Port": 0})
    for told in _NODE_INFO:
        ensure(status, "nodeInfo").setdefault(told, "")
    spec = ensure(node, "spec")
    if spec.get("podCIDR") and spec["podCIDR"] not in (spec.get("podCIDRs") or ())[:1]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs") and not spec.get("podCIDR"):
        spec["podCIDR"] = spec["podCIDRs"][0]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = copy(status["capacity"])


def _default_namespace(namespace: Object) -> None:
    meta = ensure(namespace, "metadata")
    if meta.get("name"):
        ensure(meta, "labels")["kubernetes.io/metadata.name"] = meta["name"]
    ensure(namespace, "spec")
    ensure(namespace, "status").setdefault("phase", "Active")


def _default_job(job: Object) -> None:
    ensure(job, "status")
    spec = ensure(job, "spec")
    tries = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    replacement = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    _fill(spec, backoffLimit=tries, completionMode="NonIndexed", suspend=False, podReplacementPolicy=replacement)
    for rule in dig(spec, "podFailurePolicy.rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            _fill(pattern, status="True")
    spec.setdefault("manualSelector", False)
    spec.setdefault("parallelism", 1)
    # With parallelism alone the job is a work queue, where the first success means the rest may finish.
    if "completions" not in spec and spec["parallelism"] == 1:
        spec["completions"] = 1
    template = ensure(spec, "template")
    default_pod_spec(ensure(template, "spec"))
    meta = ensure(job, "metadata")
    labels = dig(template, "metadata.labels")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def _default_cron_job(cronjob: Object) -> None:
    """Its job template stays as written, but for the pods' own defaults; the Job made of it gets the rest."""
    spec = ensure(cronjob, "spec")
    _fill(spec, concurrencyPolicy="Allow", suspend=False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = ensure(spec, "jobTemplate")
    ensure(template, "metadata")
    template = ensure(ensure(template, "spec"), "template")
    ensure(template, "metadata")
    default_pod_spec(ensure(template, "spec"))
    ensure(cronjob, "status")


def _default_priority_class(priority_class: Object) -> None:
    _fill(priority_class, value=0, preemptionPolicy="PreemptLowerPriority")


def _default_volume_object(volume: Object) -> None:
    spec = ensure(volume, "spec")
    _fill(spec, persistentVolumeReclaimPolicy="Retain", volumeMode="Filesystem")
    if isinstance(spec.get("hostPath"), dict):
        spec["hostPath"].setdefault("type", "")


def _default_claim(claim: Object) -> None:
    _fill(ensure(claim, "spec"), volumeMode="Filesystem")


def _default_storage_class(storage_class: Object) -> None:
    _fill(storage_class, reclaimPolicy="Delete", volumeBindingMode="Immediate")


def _default_event(event: Object) -> None:
    _fill(event, reportingComponent=dig(event, "source.component", "") or "", reportingInstance="")
    event.setdefault("source", {})


def _default_definition(definition: Object) -> None:
    spec = ensure(definition, "spec")
    names = ensure(spec, "names")
    if kind := names.get("kind"):
        _fill(names, singular=kind.lower(), listKind=f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})


def _default_secret(secret: Object) -> None:
    """`stringData` is there to be written alone: it becomes data."""
    secret.setdefault("type", "Opaque")
    for key, text in (secret.pop("stringData", None) or {}).items():
        ensure(secret, "data")[key] = b64encode(text.encode()).decode()


def _default_service(service: Object) -> None:
    spec = ensure(service, "spec")
    _fill(spec, sessionAffinity="None", type="ClusterIP")
    if spec["type"] != "ExternalName":
        _fill(spec, internalTrafficPolicy="Cluster")
    if spec["type"] in ("LoadBalancer", "NodePort") or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        _fill(spec, externalTrafficPolicy="Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["sessionAffinity"] == "ClientIP":
        ensure(ensure(spec, "sessionAffinityConfig"), "clientIP").setdefault("timeoutSeconds", 10800)
    else:
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        _fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0):
            port["targetPort"] = port["port"]
    ensure(service, "status").setdefault("loadBalancer", {})


def _default_pod_template(template: Object) -> None:
    pod = ensure(template, "template")
    ensure(pod, "metadata")
    default_pod_spec(ensure(pod, "spec"))


def _default_network_policy(policy: Object) -> None:
    spec = ensure(policy, "spec")
    spec.setdefault("podSelector", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*(spec.get("ingress") or ()), *(spec.get("egress") or ())):
        for port in rule.get("ports") or ():
            _fill(port, protocol="TCP")


def _default_endpoint_ports(ports: list[Object]) -> None:
    for port in ports:
        _fill(port, protocol="TCP")


def _default_endpoint_slice(slice_: Object) -> None:
    for endpoint in slice_.get("endpoints") or ():
        endpoint.setdefault("conditions", {})
    for port in slice_.get("ports") or ():
        port.setdefault("name", "")
    _default_endpoint_ports(slice_.get("ports") or [])


def _default_endpoints(endpoints: Object) -> None:
    for subset in endpoints.get("subsets") or ():
        _default_endpoint_ports(subset.get("ports") or [])


def _default_budget(budget: Object) -> None:
    counts = ensure(budget, "status")
    for count in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        counts.setdefault(count, 0)


def _default_quota(quota: Object) -> None:
    ensure(quota, "status")


def _default_ingress(ingress: Object) -> None:
    ensure(ensure(ingress, "status"), "loadBalancer")


_DEFAULTS: dict[str, Callable[[Object], None]] = {
    "pods": _default_pod,
    "daemonsets.apps": lambda obj: default_daemon_set(obj, default_pod_spec),
    "deployments.apps": lambda obj: default_deployment(obj, default_pod_spec),
    "replicasets.apps": lambda obj: default_replica_set(obj, default_pod_spec),
    "replicationcontrollers": lambda obj: default_replication_controller(obj, default_pod_spec),
    "statefulsets.apps": lambda obj: default_stateful_set(obj, default_pod_spec),
    "poddisruptionbudgets.policy": _default_budget,
    "resourcequotas": _default_quota,
    "ingresses.networking.k8s.io": _default_ingress,
    "endpoints": _default_endpoints,
    "endpointslices.discovery.k8s.io": _default_endpoint_slice,
    "networkpolicies.networking.k8s.io": _default_network_policy,
    "nodes": _default_node,
    "namespaces": _default_namespace,
    "cronjobs.batch": _default_cron_job,
    "jobs.batch": _default_job,
    "priorityclasses.scheduling.k8s.io": _default_priority_class,
    "clusterrolebindings.rbac.authorization.k8s.io": default_binding,
    "rolebindings.rbac.authorization.k8s.io": default_binding,
    "persistentvolumes": _default_volume_object,
    "persistentvolumeclaims": _default_claim,
    "storageclasses.storage.k8s.io": _default_storage_class,
    "events": _default_event,
    "secrets": _default_secret,
    "services": _default_service,
    "podtemplates": _default_pod_template,
    "customresourcedefinitions.apiextensions.k8s.io": _default_definition,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": default_mutating,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": default_validating,
    "validatingadmissionpolicies.admissionregistration.k8s.io": default_policy,
    "validatingadmissionpolicybindings.admissionregistration.k8s.io": default_policy_binding,
}

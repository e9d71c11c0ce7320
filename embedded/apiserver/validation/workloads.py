"""Field errors of the workloads of apps/v1, of ReplicationControllers, and of changes to them.

Words: Kubernetes' pkg/apis/apps/validation.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value, not_allowed, not_supported, required
from embedded.apiserver.apimachinery.objects import Object, dig, name_of
from embedded.apiserver.apimachinery.selectors import admits, parse_label_selector
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.validation.label_selectors import label_selector_errors
from embedded.apiserver.validation.pods import pod_spec_errors
from embedded.apiserver.validation.volumes import claim_spec_errors

_STATEFUL_SET_MAY_CHANGE = (
    *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_NATURAL = "must be greater than or equal to 0"
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def deployment_errors(deployment: Object) -> Iterator[FieldError]:
    spec = deployment["spec"]
    yield from _replicated_errors(spec)
    yield from _strategy_errors(spec["strategy"])
    yield from _natural_errors(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= (spec.get("minReadySeconds") or 0):
        yield bad_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def replica_set_errors(replica_set: Object) -> Iterator[FieldError]:
    yield from _replicated_errors(replica_set["spec"])
    yield from _natural_errors(replica_set["spec"], "minReadySeconds")


def stateful_set_errors(stateful_set: Object) -> Iterator[FieldError]:
    """The claims that are made for its pods count among their volumes."""
    spec = stateful_set["spec"]
    if (policy := spec["podManagementPolicy"]) not in ("OrderedReady", "Parallel"):
        yield bad_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    if (kind := spec["updateStrategy"]["type"]) not in ("RollingUpdate", "OnDelete"):
        yield bad_value("spec.updateStrategy", kind, "must be 'RollingUpdate' or 'OnDelete'")
    yield from _natural_errors(spec, "replicas", "minReadySeconds")
    inner = ("ordinals.start", "updateStrategy.rollingUpdate.partition")
    yield from _natural_errors({path: dig(spec, path) for path in inner}, *inner)
    for moment in ("whenDeleted", "whenScaled"):
        policy = (spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(moment, "Retain")
        if policy not in ("Retain", "Delete"):
            yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{moment}", policy, ("Retain", "Delete"))
    if spec.get("serviceName"):
        yield from names.dns_label("spec.serviceName", spec["serviceName"])
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from claim_spec_errors(f"spec.volumeClaimTemplates[{index}].spec", claim["spec"])
    yield from _selector_errors(spec, "statefulset")
    yield from _template_errors({**spec, "template": _with_claims(spec)}, "StatefulSet")


def _with_claims(spec: Object) -> Object:
    """The template of a StatefulSet with what its claim templates become, instead of volumes of their names."""
    claims = {name_of(claim) for claim in spec.get("volumeClaimTemplates") or ()}
    template = spec["template"]
    volumes = [volume for volume in template["spec"].get("volumes") or () if volume["name"] not in claims]
    volumes += [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(claims)]
    return {**template, "spec": {**template["spec"], "volumes": volumes}}


def replication_controller_errors(controller: Object) -> Iterator[FieldError]:
    spec = controller["spec"]
    yield from _natural_errors(spec, "replicas")
    if not spec.get("selector"):
        yield required("spec.selector")
    yield from _template_errors(
        {**spec, "selector": {"matchLabels": spec.get("selector") or {}}}, "ReplicationController"
    )


def daemon_set_errors(daemon_set: Object) -> Iterator[FieldError]:
    spec = daemon_set["spec"]
    yield from _selector_errors(spec, "daemonset")
    yield from _template_errors(spec, "DaemonSet")
    yield from _natural_errors(spec, "minReadySeconds", "revisionHistoryLimit")
    yield from _update_errors(spec["updateStrategy"])


def controller_revision_errors(revision: Object) -> Iterator[FieldError]:
    if not isinstance(revision.get("data"), dict):
        yield required("data", "data is mandatory")
    if (number := revision.get("revision") or 0) < 0:
        yield bad_value("revision", number, _NATURAL)


def selector_changes(obj: Object, old: Object) -> Iterator[FieldError]:
    """Whose pods a workload counts is settled for good."""
    if obj["spec"].get("selector") != old["spec"].get("selector"):
        yield bad_value("spec.selector", obj["spec"].get("selector"), "field is immutable")


def stateful_set_changes(stateful_set: Object, old: Object) -> Iterator[FieldError]:
    """Whose pods it has, and what they claim, is settled for good."""
    kept = (stateful_set["spec"].keys() | old["spec"].keys()) - set(_STATEFUL_SET_MAY_CHANGE)
    if any(stateful_set["spec"].get(key) != old["spec"].get(key) for key in kept):
        *most, last = (f"'{key}'" for key in _STATEFUL_SET_MAY_CHANGE)
        named = f"{', '.join(most)} and {last}"
        yield not_allowed("spec", f"updates to statefulset spec for fields other than {named} are forbidden")


def controller_revision_changes(revision: Object, old: Object) -> Iterator[FieldError]:
    if revision.get("data") != old.get("data"):
        yield bad_value("data", revision.get("data"), "field is immutable")


# -- parts -----------------------------------------------------------------------------------------------------


def _replicated_errors(spec: Object) -> Iterator[FieldError]:
    yield from _natural_errors(spec, "replicas")
    yield from _selector_errors(spec, "deployment")
    yield from _template_errors(spec, "ReplicaSet")


def _natural_errors(spec: Object, *keys: str) -> Iterator[FieldError]:
    for key in keys:
        if (value := spec.get(key)) is not None and value < 0:
            yield bad_value(f"spec.{key}", value, _NATURAL)


def _selector_errors(spec: Object, kind: str) -> Iterator[FieldError]:
    selector = spec["selector"]
    yield from label_selector_errors("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad_value("spec.selector", selector, f"empty selector is invalid for {kind}")


def _template_errors(spec: Object, kind: str) -> Iterator[FieldError]:
    template, path = spec["template"], "spec.template"
    labels = dig(template, "metadata.labels") or {}
    if not _selects(spec.get("selector"), labels):
        yield bad_value(f"{path}.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from names.labels(f"{path}.labels", labels)
    yield from pod_spec_errors(f"{path}.spec", template["spec"])
    if (policy := template["spec"]["restartPolicy"]) != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if template["spec"].get("activeDeadlineSeconds") is not None:
        yield not_allowed(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def _selects(selector: Object | None, labels: Object) -> bool:
    """A selector that cannot be read is told of elsewhere."""
    try:
        terms = parse_label_selector(selector)
    except StatusError:
        return True
    return terms is None or admits(terms, labels)


def _strategy_errors(strategy: Object) -> Iterator[FieldError]:
    path = "spec.strategy.rollingUpdate"
    match strategy["type"]:
        case "Recreate":
            if strategy.get("rollingUpdate") is not None:
                yield not_allowed(path, "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            rolling = strategy["rollingUpdate"]
            yield from _share_errors(path, rolling, "maxUnavailable", "maxSurge")
            if not share_number(rolling["maxUnavailable"]) and not share_number(rolling["maxSurge"]):
                why = "may not be 0 when `maxSurge` is 0"
                yield bad_value(f"{path}.maxUnavailable", rolling["maxUnavailable"], why)
            yield from _whole_errors(path, rolling, "maxUnavailable")
        case _:
            yield not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))


def _update_errors(strategy: Object) -> Iterator[FieldError]:
    path, kind = "spec.updateStrategy.rollingUpdate", strategy["type"]
    if kind not in ("OnDelete", "RollingUpdate"):
        yield not_supported("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete"))
    if kind != "RollingUpdate":
        return
    rolling = strategy["rollingUpdate"]
    yield from _share_errors(path, rolling, "maxUnavailable", "maxSurge")
    yield from _whole_errors(path, rolling, "maxUnavailable", "maxSurge")
    unavailable, surge = share_number(rolling["maxUnavailable"]), share_number(rolling["maxSurge"])
    if unavailable and surge:
        yield bad_value(f"{path}.maxSurge", rolling["maxSurge"], "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def _share_errors(path: str, rolling: Object, *keys: str) -> Iterator[FieldError]:
    for key in keys:
        value = rolling[key]
        if isinstance(value, str) and not _is_percent(value):
            yield bad_value(f"{path}.{key}", value, _NO_PERCENT)
        elif isinstance(value, int) and value < 0:
            yield bad_value(f"{path}.{key}", value, _NATURAL)


def _whole_errors(path: str, rolling: Object, *keys: str) -> Iterator[FieldError]:
    for key in keys:
        if isinstance(value := rolling[key], str) and share_number(value) > 100:
            yield bad_value(f"{path}.{key}", value, "must not be greater than 100%")


def _is_percent(text: str) -> bool:
    return text.endswith("%") and text[:-1].isascii() and text[:-1].isdecimal()


def share_number(value: int | str) -> int:
    """The number in front of a percent sign, or the number itself; 0 for what is neither."""
    if isinstance(value, int):
        return value
    return int(value[:-1][:9]) if _is_percent(value) else 0

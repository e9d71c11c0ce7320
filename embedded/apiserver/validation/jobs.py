"""Field errors of Jobs and CronJobs, and of changes to them."""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_supported,
    required,
    too_long,
)
from embedded.apiserver.apimachinery.objects import Object, copy, dig, name_of, uid_of
from embedded.apiserver.apimachinery.selectors import admits, parse_label_selector
from embedded.apiserver.validation.completion_indexes import index_count
from embedded.apiserver.validation.cron_schedule import ScheduleError, parse_schedule, time_zone
from embedded.apiserver.validation.label_selectors import label_selector_errors
from embedded.apiserver.validation.pods import pod_spec_errors

_NATURAL = (
    "parallelism",
    "completions",
    "backoffLimit",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
)
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_LONGEST_CRON_NAME = 52  # a job's name adds eleven characters, and 63 is as long as a label may be
_MOST_RULES = 20
_LONGEST_MANAGER = 63
_MOST_PARALLEL = 100_000


def job_errors(job: Object) -> Iterator[FieldError]:
    yield from _spec_errors("spec", job["spec"])
    yield from _selector_errors(job["spec"])


def generated_errors(job: Object) -> Iterator[FieldError]:
    """A selector that is generated is this one, and so are the labels."""
    spec, uid, name = job["spec"], uid_of(job), name_of(job)
    if spec.get("manualSelector"):
        return
    if spec.get("selector") != {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}:
        yield bad_value("spec.selector", spec.get("selector"), "`selector` not auto-generated")
    labels = dig(spec, "template.metadata.labels") or {}
    for prefix in ("", "batch.kubernetes.io/"):
        for key, wanted in ((f"{prefix}controller-uid", uid), (f"{prefix}job-name", name)):
            if labels.get(key) != wanted:
                yield bad_value(f"spec.template.metadata.labels[{key}]", labels, f"must be '{wanted}'")


def _selector_errors(spec: Object) -> Iterator[FieldError]:
    selector, labels = spec.get("selector"), dig(spec, "template.metadata.labels")
    wrong = [required("spec.selector")] if selector is None else list(label_selector_errors("spec.selector", selector))
    yield from wrong
    terms = None if wrong else parse_label_selector(selector)
    if terms is None or not admits(terms, labels or {}):
        yield bad_value("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def cron_job_errors(cronjob: Object) -> Iterator[FieldError]:
    spec, name = cronjob["spec"], name_of(cronjob)
    if len(name) > _LONGEST_CRON_NAME:
        yield bad_value("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters")
    yield from _schedule_errors(spec)
    yield from _natural_errors(
        "spec", spec, ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    )
    if spec["concurrencyPolicy"] not in _CONCURRENCY:
        yield not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _CONCURRENCY)
    yield from _template_errors(dig(spec, "jobTemplate.spec") or {})


def _template_errors(template: Object) -> Iterator[FieldError]:
    path = "spec.jobTemplate.spec"
    if template.get("selector") is not None:
        yield bad_value(f"{path}.selector", template["selector"], "`selector` will be auto-generated")
    if template.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))
    yield from _spec_errors(path, template)


def _schedule_errors(spec: Object) -> Iterator[FieldError]:
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if zone is not None:
        yield from _zone_errors(zone)
    if not schedule:
        yield required("spec.schedule")
    elif "TZ" in schedule:
        use = "cannot use both timeZone field and TZ or CRON_TZ in schedule" if zone else ""
        yield bad_value(
            "spec.schedule", schedule, use or "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        )
    else:
        try:
            parse_schedule(schedule, time_zone(None))
        except ScheduleError as error:
            yield bad_value("spec.schedule", schedule, str(error))


def _zone_errors(zone: str) -> Iterator[FieldError]:
    if not zone:
        yield bad_value("spec.timeZone", zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        yield bad_value(
            "spec.timeZone",
            zone,
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
        )
    else:
        try:
            time_zone(zone)
        except ScheduleError as error:
            yield bad_value("spec.timeZone", zone, str(error))


def _natural_errors(path: str, spec: Object, keys: tuple[str, ...]) -> Iterator[FieldError]:
    for key in keys:
        if (value := spec.get(key)) is not None and value < 0:
            yield bad_value(f"{path}.{key}", value, "must be greater than or equal to 0")


def _spec_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """A Job's specification, or the template of one, where defaults may be missing."""
    yield from _natural_errors(path, spec, _NATURAL)
    yield from _completion_errors(path, spec)
    yield from _manager_errors(f"{path}.managedBy", spec.get("managedBy"))
    yield from _replacement_errors(path, spec)
    yield from _restart_errors(path, spec)
    for number, rule in enumerate(_rules(spec, "podFailurePolicy")):
        yield from _rule_errors(f"{path}.podFailurePolicy.rules[{number}]", rule, spec)
    if len(_rules(spec, "podFailurePolicy")) > _MOST_RULES:
        count = len(_rules(spec, "podFailurePolicy"))
        message = f"Too many: {count}: must have at most {_MOST_RULES} items"
        yield FieldError(f"{path}.podFailurePolicy.rules", "FieldValueTooMany", message)
    yield from _success_errors(f"{path}.successPolicy", spec)
    yield from names.labels(f"{path}.template.labels", dig(spec, "template.metadata.labels"))
    yield from pod_spec_errors(f"{path}.template.spec", dig(spec, "template.spec") or {})


def _rules(spec: Object, policy: str) -> list[Object]:
    found: list[Object] = (spec.get(policy) or {}).get("rules") or []
    return found


def _completion_errors(path: str, spec: Object) -> Iterator[FieldError]:
    mode = spec.get("completionMode") or "NonIndexed"
    if mode not in ("NonIndexed", "Indexed"):
        yield not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if mode == "Indexed" and (spec.get("parallelism") or 0) > _MOST_PARALLEL:
        detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        yield bad_value(f"{path}.parallelism", spec["parallelism"], detail)
    per_index, most = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if per_index is not None and mode != "Indexed":
        yield bad_value(f"{path}.backoffLimitPerIndex", per_index, "requires indexed completion mode")
    if most is not None and per_index is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    if most is not None and spec.get("completions") is not None and most > spec["completions"]:
        yield bad_value(f"{path}.maxFailedIndexes", most, "must be less than or equal to completions")


def _manager_errors(path: str, manager: str | None) -> Iterator[FieldError]:
    if manager is None:
        return
    domain, slash, rest = manager.partition("/")
    if not slash or not domain or not rest:
        yield bad_value(path, manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from names.dns_subdomain(path, domain)
    if len(manager) > _LONGEST_MANAGER:
        yield too_long(path, _LONGEST_MANAGER)


def _replacement_errors(path: str, spec: Object) -> Iterator[FieldError]:
    policy = spec.get("podReplacementPolicy")
    allowed = ("Failed",) if spec.get("podFailurePolicy") else _REPLACEMENTS
    if policy is not None and policy not in allowed:
        yield not_supported(f"{path}.podReplacementPolicy", policy, allowed)


def _restart_errors(path: str, spec: Object) -> Iterator[FieldError]:
    here, policy = f"{path}.template.spec.restartPolicy", dig(spec, "template.spec.restartPolicy")
    if policy not in ("OnFailure", "Never"):
        yield (
            required(here, 'valid values: "OnFailure", "Never"')
            if policy == "Always"
            else not_supported(here, policy, ("OnFailure", "Never"))
        )
    for key in ("podFailurePolicy", "backoffLimitPerIndex"):
        if spec.get(key) is not None and policy == "OnFailure":
            yield bad_value(here, policy, f'only "Never" is supported when {key} is specified')


def _rule_errors(path: str, rule: Object, spec: Object) -> Iterator[FieldError]:
    action, codes, patterns = rule.get("action") or "", rule.get("onExitCodes"), rule.get("onPodConditions")
    if not action:
        yield required(f"{path}.action", f"valid values: {list(_ACTIONS)}")
    elif action not in _ACTIONS:
        yield not_supported(f"{path}.action", action, _ACTIONS)
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield bad_value(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    if codes and patterns:
        yield bad_value(path, rule, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif not codes and not patterns:
        yield bad_value(path, rule, "specifying one of OnExitCodes and OnPodConditions is required")
    if codes:
        yield from _exit_code_errors(f"{path}.onExitCodes", codes, dig(spec, "template.spec") or {})
    for number, pattern in enumerate(patterns or ()):
        if not pattern.get("type"):
            yield required(f"{path}.onPodConditions[{number}].type")
        else:
            yield from names.qualified_name(f"{path}.onPodConditions[{number}].type", pattern["type"])
        if pattern.get("status", "True") not in ("True", "False", "Unknown"):
            here = f"{path}.onPodConditions[{number}].status"
            yield not_supported(here, pattern["status"], ("False", "True", "Unknown"))


def _exit_code_errors(path: str, codes: Object, pod_spec: Object) -> Iterator[FieldError]:
    operator, values = codes.get("operator"), codes.get("values") or []
    if len(set(values)) < len(values):
        at = next(index for index, value in enumerate(values) if value in values[:index])
        yield duplicate(f"{path}.values[{at}]", values[at])
    elif values != sorted(values):
        yield bad_value(f"{path}.values", values, "must be ordered")
    if operator not in ("In", "NotIn"):
        yield not_supported(f"{path}.operator", operator or "", ("In", "NotIn"))
    if not values:
        yield bad_value(f"{path}.values", values, "at least one value is required")
    for number, value in enumerate(values):
        if operator == "In" and value == 0:
            yield bad_value(f"{path}.values[{number}]", value, "must not be 0 for the In operator")
    containers = [*(pod_spec.get("initContainers") or ()), *(pod_spec.get("containers") or ())]
    name = codes.get("containerName")
    if name is not None and all(container.get("name") != name for container in containers):
        message = "must be one of the container or initContainer names in the pod template"
        yield bad_value(f"{path}.containerName", name, message)


def _success_errors(path: str, spec: Object) -> Iterator[FieldError]:
    if spec.get("successPolicy") is None:
        return
    if spec.get("completionMode") != "Indexed":
        yield bad_value(path, spec["successPolicy"], "requires indexed completion mode")
    rules = _rules(spec, "successPolicy")
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    for number, rule in enumerate(rules):
        here = f"{path}.rules[{number}]"
        if rule.get("succeededIndexes") is None and rule.get("succeededCount") is None:
            yield required(here, "at least one of succeededCount or succeededIndexes must be specified")
        yield from _natural_errors(here, rule, ("succeededCount",))
        yield from _success_range_errors(here, rule, spec.get("completions") or 0)


def _success_range_errors(path: str, rule: Object, completions: int) -> Iterator[FieldError]:
    text, wanted = rule.get("succeededIndexes"), rule.get("succeededCount")
    told, most = "the number of specified completions", completions
    if text is not None:
        try:
            told, most = "the number of indexes in the specified succeededIndexes field", index_count(text, completions)
        except ValueError as error:
            yield bad_value(f"{path}.succeededIndexes", text, f"error parsing succeededIndexes: {error}")
    if wanted is not None and wanted > most:
        yield bad_value(f"{path}.succeededCount", wanted, f"must be less than or equal to {most} ({told})")


_FIXED = ("completionMode", "selector", "podFailurePolicy", "backoffLimitPerIndex", "successPolicy", "managedBy")


def job_update_errors(job: Object, old: Object) -> Iterator[FieldError]:
    """What identifies a job, and what it runs, is settled at birth."""
    yield from generated_errors(job)
    spec, old_spec = job["spec"], old["spec"]
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for key in (*_FIXED, *(() if elastic else ("completions",))):
        if spec.get(key) != old_spec.get(key):
            yield bad_value(f"spec.{key}", spec.get(key), "field is immutable")
    # Queueing systems say where the pods of a suspended job may run before it starts.
    movable = old_spec.get("suspend") and not dig(old, "status.startTime")
    if _settled(spec["template"], movable) != _settled(old_spec["template"], movable):
        yield bad_value("spec.template", spec["template"], "field is immutable")


def _settled(template: Object, movable: bool) -> Object:
    """The part of the template that must stay."""
    if not movable:
        return template
    kept = copy(template)
    for key in ("labels", "annotations"):
        (kept.get("metadata") or {}).pop(key, None)
    for key in ("nodeSelector", "affinity", "tolerations", "schedulingGates"):
        kept["spec"].pop(key, None)
    for container in kept["spec"].get("containers") or ():
        container.pop("resources", None)
    return kept

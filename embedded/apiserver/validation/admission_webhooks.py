"""Mutating- and ValidatingWebhookConfigurations as they are written: their defaults and what is wrong with them.

The rules are those of https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_supported,
    required,
)
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.cel.match_conditions import condition_errors

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_CHOICES = {
    "failurePolicy": ("Fail", "Ignore"),
    "matchPolicy": ("Equivalent", "Exact"),
    "reinvocationPolicy": ("IfNeeded", "Never"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
_SELECTOR_OPERATORS = ("DoesNotExist", "Exists", "In", "NotIn")
REVIEW_VERSION = "v1"
_MOST_SECONDS = 30


def default_mutating(configuration: Object) -> None:
    _default(configuration)
    for hook in configuration.get("webhooks") or ():
        hook.setdefault("reinvocationPolicy", "Never")


def default_validating(configuration: Object) -> None:
    _default(configuration)


def _default(configuration: Object) -> None:
    for hook in configuration.get("webhooks") or ():
        hook.setdefault("failurePolicy", "Fail")
        hook.setdefault("matchPolicy", "Equivalent")
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        hook.setdefault("timeoutSeconds", 10)
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (hook.get("clientConfig") or {}).get("service")
        if service:
            service.setdefault("port", 443)


def configuration_errors(configuration: Object) -> Iterator[FieldError]:
    """Every field error of a configuration of either kind, with its defaults in place."""
    seen: set[str] = set()
    for index, hook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_errors(path, hook)
        if name and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _hook_errors(path: str, hook: Object) -> Iterator[FieldError]:
    yield from _name_errors(f"{path}.name", hook.get("name") or "")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from rule_errors(f"{path}.rules[{index}]", rule)
    for key, allowed in _CHOICES.items():
        if hook.get(key) and hook[key] not in allowed:
            yield not_supported(f"{path}.{key}", hook[key], allowed)
    if not hook.get("sideEffects"):
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    if not 1 <= hook["timeoutSeconds"] <= _MOST_SECONDS:
        detail = f"the timeout value must be between 1 and {_MOST_SECONDS} seconds"
        yield bad_value(f"{path}.timeoutSeconds", hook["timeoutSeconds"], detail)
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(f"{path}.{key}", hook[key])
    yield from _client_errors(f"{path}.clientConfig", hook.get("clientConfig") or {})
    yield from condition_errors(f"{path}.matchConditions", hook.get("matchConditions") or ())
    yield from _review_version_errors(f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or [])


def _name_errors(path: str, name: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    wrong = list(names.dns_subdomain(path, name))
    yield from wrong
    if not wrong and name.count(".") < 2:
        yield bad_value(path, name, "should be a domain with at least three segments separated by dots")


def _review_version_errors(path: str, versions: list[str]) -> Iterator[FieldError]:
    if not versions:
        yield required(path, f"must specify one of {REVIEW_VERSION}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield bad_value(f"{path}[{index}]", version, "duplicate version")
    if REVIEW_VERSION not in versions:
        yield bad_value(path, versions, f"must include at least one of {REVIEW_VERSION}")


def rule_errors(path: str, rule: Object) -> Iterator[FieldError]:
    for key, what in (("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")):
        found = rule.get(key) or []
        if not found:
            yield required(f"{path}.{key}")
        if len(found) > 1 and "*" in found:
            yield bad_value(f"{path}.{key}", found, f"if '*' is present, must not specify other {what}")
    for index, operation in enumerate(rule.get("operations") or ()):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield required(f"{path}.apiVersions[{index}]")
    yield from _resource_errors(f"{path}.resources", rule.get("resources") or [])
    if rule["scope"] not in _SCOPES:
        yield not_supported(f"{path}.scope", rule["scope"], _SCOPES)


def _resource_errors(path: str, resources: list[str]) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
    for index, text in enumerate(resources):
        if not text:
            yield required(f"{path}[{index}]")
        resource, slash, subresource = text.partition("/")
        for wider in (f"{resource}/*", f"*/{subresource}") if slash else ():
            if wider in resources[:index]:
                yield bad_value(f"{path}[{index}]", text, f"if '{wider}' is present, must not specify {text}")
    if "*/*" in resources and len(resources) > 1:
        yield bad_value(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and any("/" not in text and text != "*" for text in resources):
        detail = "if '*' is present, must not specify other resources without subresources"
        yield bad_value(path, resources, detail)


def selector_errors(path: str, selector: Object) -> Iterator[FieldError]:
    yield from names.labels(f"{path}.matchLabels", selector.get("matchLabels"))
    for index, term in enumerate(selector.get("matchExpressions") or ()):
        here, values = f"{path}.matchExpressions[{index}]", term.get("values") or []
        yield from names.qualified_name(f"{here}.key", term["key"])
        if term["operator"] not in _SELECTOR_OPERATORS:
            yield bad_value(f"{here}.operator", term["operator"], "not a valid selector operator")
        elif term["operator"] in ("In", "NotIn") and not values:
            yield required(f"{here}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif term["operator"] in ("Exists", "DoesNotExist") and values:
            yield not_allowed(f"{here}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")


def _client_errors(path: str, client: Object) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_errors(f"{path}.url", url)
    elif service is not None:
        yield from _service_errors(f"{path}.service", service)


def _url_errors(path: str, url: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{form}")
        return
    faults: Iterable[tuple[bool, str]] = (
        (parts.scheme != "https", "'https' is the only allowed URL scheme" + form),
        (not has_host, "host must be specified" + form),
        (parts.username is not None, "user information is not permitted in the URL"),
        (bool(parts.fragment), "fragments are not permitted in the URL"),
        (bool(parts.query), "query parameters are not permitted in the URL"),
    )
    for wrong, detail in faults:
        if wrong:
            yield bad_value(path, url, detail)


def _service_errors(path: str, service: Object) -> Iterator[FieldError]:
    for key in ("name", "namespace"):
        if not service.get(key):
            yield required(f"{path}.{key}", f"service {key} is required")
    if not 1 <= service["port"] <= 65535:
        yield bad_value(f"{path}.port", service["port"], "port is not valid: must be between 1 and 65535, inclusive")
    if service.get("path") and not service["path"].startswith("/"):
        yield bad_value(f"{path}.path", service["path"], "must start with a '/'")

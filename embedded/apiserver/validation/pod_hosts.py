"""Field errors of what pods say of their surroundings: names, DNS, the host, claims.

Rules and words: `validatePodDNSConfig`, `ValidateHostAliases`, `validatePodResourceClaims`, `validateHostUsers` and
`ValidatePodCreate` in Kubernetes' pkg/apis/core/validation.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.apimachinery import names
from embedded.apiserver.apimachinery.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    not_allowed,
    not_existing,
    required,
)
from embedded.apiserver.apimachinery.objects import Object, dig

MIRROR = "kubernetes.io/config.mirror"
_MOST_NAMESERVERS, _MOST_SEARCHES, _MOST_SEARCH_CHARACTERS = 3, 32, 2048
_CLAIM_KEYS = ("resourceClaimName", "resourceClaimTemplateName")


def surroundings_errors(path: str, spec: Object) -> Iterator[FieldError]:
    """Everything wrong with them in a defaulted pod specification."""
    yield from _dns_errors(f"{path}.dnsConfig", spec)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        yield from names.ip_address(f"{here}.ip", alias.get("ip") or "")
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from names.dns_subdomain(f"{here}.hostnames[{number}]", name)
    if spec.get("hostUsers") is False:
        for key in ("hostNetwork", "hostIPC", "hostPID"):
            if spec.get(key):
                yield not_allowed(f"{path}.{key}", "when `hostUsers` is false")
    yield from _claim_errors(path, spec)


def _dns_errors(path: str, spec: Object) -> Iterator[FieldError]:
    config, servers = spec.get("dnsConfig"), dig(spec, "dnsConfig.nameservers") or []
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        elif not servers:
            yield required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
    if config is None:
        return
    if len(servers) > _MOST_NAMESERVERS:
        yield bad_value(f"{path}.nameservers", servers, f"must not have more than {_MOST_NAMESERVERS} nameservers")
    for index, server in enumerate(servers):
        yield from names.ip_address(f"{path}.nameservers[{index}]", server)
    searches = config.get("searches") or []
    if len(searches) > _MOST_SEARCHES:
        yield bad_value(f"{path}.searches", searches, f"must not have more than {_MOST_SEARCHES} search paths")
    if len(" ".join(searches)) > _MOST_SEARCH_CHARACTERS:
        detail = f"must not have more than {_MOST_SEARCH_CHARACTERS} characters (including spaces) in the search list"
        yield bad_value(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            yield from names.search_domain(f"{path}.searches[{index}]", search.removesuffix("."))
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


def _claim_errors(path: str, spec: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(spec.get("resourceClaims") or ()):
        here, name = f"{path}.resourceClaims[{index}]", claim.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        else:
            yield from names.dns_label(f"{here}.name", name)
        seen.add(name)
        used = [key for key in _CLAIM_KEYS if claim.get(key) is not None]
        if not used:
            yield bad_value(here, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        elif len(used) > 1:
            why = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield bad_value(here, claim, why)
    for group in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(group) or ()):
            for number, claim in enumerate(dig(container, "resources.claims") or ()):
                if claim.get("name") not in seen:
                    yield not_existing(f"{path}.{group}[{index}].resources.claims[{number}]", claim.get("name"))


def new_pod_errors(pod: Object) -> Iterator[FieldError]:
    """What is held against a pod only when it is made."""
    if pod["spec"].get("ephemeralContainers"):
        yield not_allowed("spec.ephemeralContainers", "cannot be set on create")
    mirror = (dig(pod, "metadata.annotations") or {}).get(MIRROR)
    if mirror is not None and not pod["spec"].get("nodeName"):
        detail = "must set spec.nodeName if mirror pod annotation is set"
        yield bad_value(f"metadata.annotations[{MIRROR}]", mirror, detail)

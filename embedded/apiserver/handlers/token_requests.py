"""POST …/serviceaccounts/NAME/token: a token for an account, bound to a pod, a Secret or a node where it says so.

As kube-apiserver does it: `pkg/registry/core/serviceaccount/storage/token.go`, and for kubelets the NodeRestriction
plugin.
"""

from __future__ import annotations

from collections.abc import Iterator

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.field_errors import FieldError, bad_value
from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of, rfc3339, uid_of
from embedded.apiserver.apimachinery.resource_types import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, ResourceType
from embedded.apiserver.authentication.authenticator import API_AUDIENCES
from embedded.apiserver.authentication.service_account_tokens import AccountTokens, Reference, Subject
from embedded.apiserver.handlers.write_options import write_options
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.user_info import UserInfo
from embedded.apiserver.serialization.request_body import body_of

TOKEN_REQUESTS = ResourceType("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", True, verbs=("create",))
_DEFAULT_SECONDS = 3600
_LEAST_SECONDS = 600
_MOST_SECONDS = 1 << 32
_MADE_AGAIN = (
    "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted "
    "and then recreated"
)
_BINDABLE = {"Pod": PODS, "Secret": SECRETS, "Node": NODES}


class TokenRequests:
    """Answers token requests. `create` raises StatusError for what is refused."""

    def __init__(self, resources: Resources, writes: AdmittedWrites, tokens: AccountTokens) -> None:
        self._resources = resources
        self._writes = writes
        self._tokens = tokens

    async def create(self, target: Target, request: Request) -> Response:
        if request.method != "POST":
            raise status.method_not_allowed()
        check_options(request)
        options = write_options(request)
        body = self._resources.accepted(TOKEN_REQUESTS, body_of(request, TOKEN_REQUESTS), options)
        if request.user.node:
            self._check_node(target, body.get("spec") or {}, request.user)
        account = self._account(target, body["metadata"])
        asked = self._completed(body, account)
        admitted = await self._writes.admit(SERVICE_ACCOUNTS, "token", asked, None, options)
        wanted = self._completed(self._resources.accepted(TOKEN_REQUESTS, admitted, options), account)
        spec = wanted["spec"]
        if errors := list(_errors(spec)):
            raise status.invalid(TOKEN_REQUESTS, "", errors)
        subject = self._subject(account, spec.get("boundObjectRef"))
        token, expires = self._tokens.issue(subject, tuple(spec["audiences"]), spec["expirationSeconds"])
        told = {"token": token, "expirationTimestamp": rfc3339(expires)}
        return answer({**wanted, "status": told}, 201, options.warnings)

    def _account(self, target: Target, meta: Object) -> Object:
        """The account of the path; raises where the body names another."""
        for key, wanted, what in (("name", target.name, "name"), ("namespace", target.namespace, "namespace")):
            if meta.get(key) and meta[key] != wanted:
                why = f"must match the service account {what} if specified"
                raise status.invalid(TOKEN_REQUESTS, target.name, [bad_value(f"metadata.{key}", meta[key], why)])
        account = self._resources.get(SERVICE_ACCOUNTS, target.namespace, target.name)
        if meta.get("uid") and meta["uid"] != uid_of(account):
            raise status.conflict(
                TOKEN_REQUESTS,
                target.name,
                f"the UID in the token request ({meta['uid']}) does not match the UID of the service account "
                f"({uid_of(account)})",
            )
        return account

    def _completed(self, body: Object, account: Object) -> Object:
        """The request with its defaults, about this account."""
        spec = body.get("spec") or {}
        meta = {
            **body["metadata"],
            "name": name_of(account),
            "namespace": namespace_of(account),
            "uid": uid_of(account),
            "creationTimestamp": rfc3339(self._resources.clock()),
        }
        spec = {"expirationSeconds": _DEFAULT_SECONDS, **spec, "audiences": spec.get("audiences") or [*API_AUDIENCES]}
        head = {"apiVersion": TOKEN_REQUESTS.api_version, "kind": TOKEN_REQUESTS.kind}
        return {**head, "metadata": meta, "spec": spec}

    def _check_node(self, target: Target, spec: Object, user: UserInfo) -> None:
        """A kubelet gets tokens for the pods of its node alone, and for audiences that those name."""
        bound = spec.get("boundObjectRef") or {}
        if (bound.get("apiVersion"), bound.get("kind")) != ("v1", "Pod") or not bound.get("name"):
            raise _refused(target, "node requested token not bound to a pod")
        if not bound.get("uid"):
            raise _refused(target, "node requested token with a pod binding without a uid")
        pod = self._resources.get(PODS, target.namespace, bound["name"])
        if bound["uid"] != uid_of(pod):
            raise _refused(target, _MADE_AGAIN.format(bound["uid"]))
        if dig(pod, "spec.nodeName") != user.node:
            raise _refused(target, "node requested token bound to a pod scheduled on a different node")
        audiences = spec.get("audiences") or [""]
        if len(audiences) > 1:
            raise _refused(target, "node may only request 0 or 1 audiences")
        if audiences[0] not in _audiences(pod):
            why = f'audience "{audiences[0]}" not found in pod spec volume, {user.name} is not authorized to request '
            raise _refused(target, why + "tokens for this audience")

    def _subject(self, account: Object, bound: Object | None) -> Subject:
        namespace = namespace_of(account)
        owner = Reference(name_of(account), uid_of(account))
        if bound is None:
            return Subject(namespace, owner)
        rtype = _bindable(bound)
        held = self._resources.get(rtype, namespace if rtype.namespaced else "", str(bound.get("name") or ""))
        if rtype is PODS and dig(held, "spec.serviceAccountName") != owner.name:
            raise status.bad_request(
                f'cannot bind token for serviceaccount "{owner.name}" to pod running with different serviceaccount '
                "name."
            )
        if bound.get("uid") not in (None, "", uid_of(held)):
            raise status.conflict(rtype, name_of(held), _MADE_AGAIN.format(bound["uid"]))
        reference = Reference(name_of(held), uid_of(held))
        if rtype is PODS:
            return Subject(namespace, owner, pod=reference, node=self._node_of(held))
        return Subject(namespace, owner, **{"secret" if rtype is SECRETS else "node": reference})

    def _node_of(self, pod: Object) -> Reference | None:
        """The node of a pod, by name alone where its object is not there."""
        name = str(dig(pod, "spec.nodeName") or "")
        held = self._resources.store.get(NODES.id, "", name)
        return Reference(name, held.uid if held else "") if name else None


def _audiences(pod: Object) -> set[str]:
    """Of the tokens in a pod's volumes; that of this server goes without a name."""
    sources = [source for volume in dig(pod, "spec.volumes") or () for source in dig(volume, "projected.sources") or ()]
    tokens = [source["serviceAccountToken"] for source in sources if "serviceAccountToken" in source]
    return {str(token.get("audience") or "") for token in tokens}


def _bindable(bound: Object) -> ResourceType:
    group, _, version = str(bound.get("apiVersion") or "").rpartition("/")
    kind = str(bound.get("kind") or "")
    rtype = _BINDABLE.get(kind) if group == "" else None
    if rtype is None:
        what = f"{group}/{version}, Kind={kind}"
        raise status.bad_request(f"cannot bind token to object of type {what}")
    return rtype


def _errors(spec: Object) -> Iterator[FieldError]:
    seconds = spec["expirationSeconds"]
    if seconds < _LEAST_SECONDS:
        yield bad_value("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST_SECONDS:
        yield bad_value("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")


def _refused(target: Target, why: str) -> status.StatusError:
    return status.forbidden(SERVICE_ACCOUNTS, target.name, why)

"""Access control: as whom a request acts, and whether that user may do what it asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from embedded.apiserver.authentication.impersonation import impersonated
from embedded.apiserver.authorization.node_authorizer import check_own
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.attributes import Attributes, Authorizer, Decision, attributes_of, forbidden
from embedded.apiserver.request.messages import Request
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.user_info import UserInfo

_WAYS_INTO_PODS = {("", "pods/attach"), ("", "pods/exec"), ("", "pods/portforward")}


@dataclass(slots=True)
class AdmittedRequest:
    """One request on its way through the server; `received` in seconds since the epoch.

    `acts_as` is whom its sender impersonates, `decision` is None until somebody has decided.
    """

    request: Request
    attributes: Attributes
    received: float
    acts_as: UserInfo | None = None
    decision: Decision | None = None

    @classmethod
    def of(cls, request: Request, now: float) -> AdmittedRequest:
        return cls(request, attributes_of(request), now)


class AccessControl:
    """Lets requests in. Every method raises 403 for what is not allowed."""

    def __init__(self, resources: Resources, authorizer: Authorizer) -> None:
        self._resources = resources
        self._authorizer = authorizer

    def admit(self, visit: AdmittedRequest) -> Request:
        """The request as that of the user it acts as."""
        request, wanted = visit.request, visit.attributes
        user = impersonated(request, self._authorizer)
        if user is not request.user:
            visit.acts_as = user
            request, wanted = replace(request, user=user), replace(wanted, user=user)
        visit.decision = decision = self._authorizer.decide(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)
        self._admit_connection(wanted)
        check_own(self._resources, wanted, request)
        return request

    def _admit_connection(self, wanted: Attributes) -> None:
        """A websocket begins with GET, and runs commands all the same: it takes `create`, too.

        As kube-apiserver from 1.35 on (AuthorizePodWebsocketUpgradeCreatePermission).
        """
        if wanted.verb == "get" and (wanted.group, wanted.combined_resource) in _WAYS_INTO_PODS:
            creating = replace(wanted, verb="create")
            decision = self._authorizer.decide(creating)
            if not decision.allowed:
                raise forbidden(creating, decision.reason)

    def admit_birth(self, target: Target, request: Request) -> None:
        """Where an apply would create its object, its user must be allowed to create one as well."""
        held = self._resources.store.get(target.rtype.id, target.namespace, target.name)
        if target.subresource or held is not None:
            return
        wanted = replace(attributes_of(request), verb="create")
        decision = self._authorizer.decide(wanted)
        if not decision.allowed:
            raise forbidden(wanted, decision.reason)

"""TokenReview, by which other servers learn whose token they got, and SelfSubjectReview (`kubectl auth whoami`)."""

from __future__ import annotations

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object, dig, rfc3339
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.authentication.authenticator import Authenticator
from embedded.apiserver.authentication.service_account_tokens import TokenError
from embedded.apiserver.handlers.write_options import write_options
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.query_options import check_options
from embedded.apiserver.request.target import Target
from embedded.apiserver.serialization.request_body import body_of

_GROUP, _VERSION = "authentication.k8s.io", "v1"
_CREATE = ("create",)
SELF_SUBJECT_REVIEWS = ResourceType(_GROUP, _VERSION, "selfsubjectreviews", "SelfSubjectReview", False, verbs=_CREATE)
TOKEN_REVIEWS = ResourceType(_GROUP, _VERSION, "tokenreviews", "TokenReview", False, verbs=_CREATE)
AUTHENTICATION_REVIEWS = (SELF_SUBJECT_REVIEWS, TOKEN_REVIEWS)


class AuthenticationReviews:
    """Answers for both; nothing of them is kept."""

    def __init__(self, resources: Resources, authenticator: Authenticator) -> None:
        self._resources = resources
        self._authenticator = authenticator

    def create(self, target: Target, request: Request) -> Response:
        """The review with its status; raises 400 for one that asks nothing, 405 for another method than POST."""
        if target.name:
            raise status.unknown_path()
        if request.method != "POST":
            raise status.method_not_allowed()
        check_options(request)
        rtype, options = target.rtype, write_options(request)
        review = self._resources.accepted(rtype, body_of(request, rtype), options)
        review |= {"apiVersion": rtype.api_version, "kind": rtype.kind}
        if rtype is TOKEN_REVIEWS:
            review["status"] = self._reviewed(review)
        else:
            review["metadata"] = {"creationTimestamp": rfc3339(self._resources.clock())}
            review["status"] = {"userInfo": request.user.as_info()}
        return answer(review, 201, options.warnings)

    def _reviewed(self, review: Object) -> Object:
        token = str(dig(review, "spec.token") or "")
        if not token:
            raise status.bad_request("token is required for TokenReview in authentication")
        try:
            proven = self._authenticator.check(token.encode(), dig(review, "spec.audiences") or ())
        except TokenError as error:
            return {"user": {}, "error": str(error)}
        return {"authenticated": True, "user": proven.user.as_info(), "audiences": list(proven.audiences)}

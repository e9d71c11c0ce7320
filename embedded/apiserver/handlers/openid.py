"""How others check service account tokens by themselves: the documents of OpenID Connect discovery.

https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/#service-account-issuer-discovery
"""

from __future__ import annotations

from embedded.apiserver.apimachinery.objects import encode
from embedded.apiserver.authentication.signing_key import ALGORITHM, ISSUER, SigningKey
from embedded.apiserver.request.messages import JSON, Request, Response

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"
_KEPT = {"Cache-Control": "public, max-age=3600"}


def configuration(request: Request) -> Response:
    """The discovery document, for a client that reaches this server as it does now."""
    found = {
        "issuer": ISSUER,
        "jwks_uri": f"https://{request.headers.get('host', '')}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    return Response(200, encode(found), JSON, headers=_KEPT)


def keys(key: SigningKey) -> Response:
    """The public keys that tokens are signed with."""
    return Response(200, encode(key.key_set()), "application/jwk-set+json", headers=_KEPT)

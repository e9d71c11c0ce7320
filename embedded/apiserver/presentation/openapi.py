"""OpenAPI v3 documents, one for each group and version: what `kubectl explain` shows, and how kubectl sends its writes.

kubectl looks for the PATCH operation of a kind, for its `fieldValidation` and `dryRun` parameters, and for the
patch content types; without the latter it falls back to OpenAPI v2. A manifest of kind List it looks up in v2 alone,
and skips its own validation of every kind that v2 does not describe: ours describes none, and the server validates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from hashlib import sha256

from embedded.apiserver.apimachinery.objects import Clock, Object, encode
from embedded.apiserver.apimachinery.resource_types import Registry, ResourceType
from embedded.apiserver.apimachinery.status import unknown_path
from embedded.apiserver.presentation.discovery import VERSION
from embedded.apiserver.presentation.openapi_paths import paths_of
from embedded.apiserver.presentation.openapi_schemas import schemas_of
from embedded.apiserver.request.messages import Request, Response

# What clients ask for is no media type by RFC 2045, for its @; upstream answers with a dot in its place.
V2_ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_CONTENT_TYPE = V2_ACCEPTED.replace("@", ".")
V2_DOCUMENT = b""  # a protobuf message without a field
# A document that is asked for by its hash never changes. Both headers say so, the older one to older caches.
_YEAR_SECONDS = 365 * 24 * 3600
_FOR_EVER = f"public, immutable, max-age={_YEAR_SECONDS}"


@dataclass(frozen=True, slots=True)
class _Document:
    types: tuple[ResourceType, ...]
    body: bytes
    digest: str


class Documents:
    """The documents of what a registry serves, made when first asked for."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._generation = -1
        self._made: dict[tuple[str, str], _Document] = {}

    def answer(self, request: Request, rest: Sequence[str]) -> Response:
        """What stands below `/openapi/v3`; raises 404."""
        match rest:
            case [] | [""]:
                return Response(200, encode(self.index()))
            case ["api", version]:
                return self._document_answer(request, "", version)
            case ["apis", group, version]:
                return self._document_answer(request, group, version)
        raise unknown_path()

    def index(self) -> Object:
        """The list of documents, each with a hash of its content so that clients may keep it."""
        paths = {}
        for group, versions in self._registry.groups().items():
            for version in versions:
                paths[_path(group, version)] = {"serverRelativeURL": self._url(group, version)}
        return {"paths": paths}

    def _url(self, group: str, version: str) -> str:
        return f"/openapi/v3/{_path(group, version)}?hash={self._document(group, version).digest}"

    def _document_answer(self, request: Request, group: str, version: str) -> Response:
        if not self._registry.serves(group, version):
            raise unknown_path()
        document = self._document(group, version)
        tag = f'"{document.digest}"'
        headers = {"ETag": tag, "Vary": "Accept"}
        if asked := request.query.get("hash"):
            if asked != document.digest:
                return Response(301, b"", headers={"Location": self._url(group, version)})
            headers["Cache-Control"] = _FOR_EVER
            headers["Expires"] = formatdate(self._clock() + _YEAR_SECONDS, usegmt=True)
        if tag in (known.strip() for known in request.headers.get("if-none-match", "").split(",")):
            return Response(304, b"", headers=headers)
        return Response(200, document.body, headers=headers)

    def _document(self, group: str, version: str) -> _Document:
        if self._generation != self._registry.generation:
            self._forget_changed()
        found = self._made.get((group, version))
        if found is None:
            found = self._made[(group, version)] = _made(self._registry, group, version)
        return found

    def _forget_changed(self) -> None:
        """Keep what describes the very same types; a custom type of the same name may have another schema."""
        served = self._registry.groups()
        self._made = {
            (group, version): made
            for (group, version), made in self._made.items()
            if _same(made.types, served.get(group, {}).get(version, ()))
        }
        self._generation = self._registry.generation


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _same(known: Sequence[ResourceType], served: Iterable[ResourceType]) -> bool:
    return list(map(id, known)) == list(map(id, served))


def _made(registry: Registry, group: str, version: str) -> _Document:
    types = tuple(registry.groups()[group][version])
    body = encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
            "paths": paths_of(types),
            "components": {"schemas": schemas_of(types)},
        }
    )
    return _Document(types, body, sha256(body).hexdigest().upper())

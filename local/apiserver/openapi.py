"""OpenAPI v3 documents, one for each group and version: what `kubectl explain` shows, and how kubectl sends its writes.

kubectl looks for the PATCH operation of a kind, for its `fieldValidation` and `dryRun` parameters, and for the
patch content types; without the latter it falls back to OpenAPI v2. A manifest of kind List it looks up in v2 alone,
and skips its own validation of every kind that v2 does not describe: ours describes none, and the server validates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from local.apiserver.discovery import VERSION
from local.apiserver.messages import Request, Response
from local.apiserver.objects import Object, encode
from local.apiserver.openapi_paths import paths_of
from local.apiserver.openapi_schemas import schemas_of
from local.apiserver.registry import Registry, ResourceType
from local.apiserver.status import unknown_path

# What clients ask for is no media type by RFC 2045, for its @; upstream answers with a dot in its place.
V2_ACCEPTED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_CONTENT_TYPE = V2_ACCEPTED.replace("@", ".")
V2_DOCUMENT = b""  # a protobuf message without a field
# A document that is asked for by its hash never changes.
_FOR_EVER = "public, immutable, max-age=31536000"


@dataclass(frozen=True, slots=True)
class _Document:
    types: tuple[ResourceType, ...]
    body: bytes
    digest: str


class Documents:
    """The documents of what a registry serves, made when first asked for."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
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
                path = f"apis/{group}/{version}" if group else f"api/{version}"
                digest = self._document(group, version).digest
                paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
        return {"paths": paths}

    def _document_answer(self, request: Request, group: str, version: str) -> Response:
        if not self._registry.serves(group, version):
            raise unknown_path()
        document = self._document(group, version)
        tag = f'"{document.digest}"'
        headers = {"ETag": tag, "Vary": "Accept"}
        if request.query.get("hash") == document.digest:
            headers["Cache-Control"] = _FOR_EVER
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

"""GET: single objects, and lists with paging."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.numerals import natural
from embedded.apiserver.apimachinery.objects import Object, decode_object, encode, quoted
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.selectors import Filter, parse_fields, parse_labels
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.presentation.tables import (
    included,
    metadata_list,
    metadata_only,
    table,
    wants_metadata,
    wants_metadata_of,
    wants_table,
)
from embedded.apiserver.registry.resources import Resources
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.target import Target
from embedded.apiserver.storage.object_store import Record, Store

_REVISIONS = 2**64
_UNSPECIFIED = -1  # the revision in a token that goes on with whatever is there by then
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


_NOT_KEPT = "The resourceVersion for the provided list is too old."


class _Continue(msgspec.Struct, frozen=True):
    """Where a paged list goes on: the revision it began at and the last key sent."""

    revision: int
    namespace: str
    name: str


class ExpiredToken(StatusError):
    """410 with another token, for a client that prefers an inconsistent remainder to starting over."""

    def __init__(self, token: str) -> None:
        super().__init__(410, "Expired", _TOO_OLD)
        self._token = token

    @property
    def body(self) -> Object:
        return {**super().body, "metadata": {"continue": self._token}}


def read_object(resources: Resources, target: Target, request: Request) -> Response:
    asked = revision_of(request)
    if asked is not None and asked > resources.store.revision:
        raise status.from_the_future(asked, resources.store.revision)
    obj = resources.get(target.rtype, target.namespace, target.name)
    if wants_table(request.accept):
        include = included(request)
        rows = table(target.rtype, [obj], include, resources.clock())
        rows["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        return answer(rows)
    return answer(metadata_only(obj) if wants_metadata_of(request.accept, one=True) else obj)


def presented(resources: Resources, target: Target, request: Request, response: Response) -> Response:
    """The answer to a write in the form its client asked for. What is no object of the type, as a Status, stays."""
    as_table = wants_table(request.accept)
    if not (as_table or wants_metadata(request.accept)):
        return response
    obj, rtype = decode_object(response.body), target.rtype
    many = obj.get("kind") == rtype.listing_kind
    if not many and obj.get("kind") != rtype.kind:
        return response
    found: list[Object] = obj["items"] if many else [obj]
    if as_table:
        rows = table(rtype, found, included(request), resources.clock())
        rows["metadata"] = obj["metadata"] if many else {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return answer(rows, response.status, [*response.warnings])
    shown = metadata_list(found, obj["metadata"]) if many else metadata_only(obj)
    return answer(shown, response.status, [*response.warnings])


def filter_of(target: Target, request: Request) -> Filter:
    fields = parse_fields(request.query.get("fieldSelector", ""), target.rtype)
    if target.name:
        fields += parse_fields(f"metadata.name={target.name}", target.rtype)
    return Filter(target.namespace, parse_labels(request.query.get("labelSelector", "")), fields)


def revision_of(request: Request) -> int | None:
    """The asked resourceVersion; None when there is none."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    revision = natural(text)
    if revision is None or revision >= _REVISIONS:
        why = "value out of range" if text.isascii() and text.isdecimal() else "invalid syntax"
        told = f"Invalid value: {quoted(text)}: strconv.ParseUint: parsing {quoted(text)}: {why}"
        raise status.bad_request(f"invalid resource version: resourceVersion: {told}")
    return revision


def read_list(resources: Resources, target: Target, request: Request) -> Response:
    """A list in (namespace, name) order, whole or page by page; all pages show the moment of the first."""
    page, meta = page_of(resources.store, target.rtype, filter_of(target, request), request)
    return _shown(resources, target, request, page, meta)


def page_of(store: Store, rtype: ResourceType, wanted: Filter, request: Request) -> tuple[list[Record], Object]:
    """The records of a list, or of one page of it, and the list's metadata."""
    revision, found = _asked(store, rtype, wanted, request)
    limit = _limit(request)
    page = list(islice(found, limit or None))
    meta: Object = {"resourceVersion": str(revision)}
    rest = sum(1 for _ in found) if limit else 0
    if rest:
        meta["continue"] = _encode_token(revision, page[-1])
        if wanted.admits_namespace_only:  # with selectors, Kubernetes does not count either
            meta["remainingItemCount"] = rest
    return page, meta


def _asked(store: Store, rtype: ResourceType, wanted: Filter, request: Request) -> tuple[int, Iterator[Record]]:
    """The records asked for, and the revision that they are shown at."""
    asked, token = revision_of(request), request.query.get("continue", "")
    if token:
        return _continued(store, rtype, wanted, _decode_token(token))
    if asked is not None and asked > store.revision:
        raise status.from_the_future(asked, store.revision)
    # A page at a revision means exactly that revision where no match is named (KEP-2523, "legacy exact"), and
    # collections are deleted page by page.
    paged = _limit(request) or request.method == "DELETE"
    match = request.query.get("resourceVersionMatch") or ("Exact" if paged else "")
    if asked and match == "Exact":
        try:
            return asked, store.select_at(rtype.id, asked, wanted)
        except StatusError as error:
            raise status.expired(_NOT_KEPT) if error.code == 410 else error from None
    return store.revision, store.select(rtype.id, wanted)


def _continued(store: Store, rtype: ResourceType, wanted: Filter, point: _Continue) -> tuple[int, Iterator[Record]]:
    after = (point.namespace, point.name)
    if point.revision == _UNSPECIFIED:
        return store.revision, store.select(rtype.id, wanted, after)
    try:
        return point.revision, store.select_at(rtype.id, point.revision, wanted, after)
    except StatusError as error:
        if error.code != 410:
            raise
        token = _Continue(_UNSPECIFIED, *after)
        raise ExpiredToken(urlsafe_b64encode(encode(token)).decode()) from None


def _shown(resources: Resources, target: Target, request: Request, page: list[Record], meta: Object) -> Response:
    rtype = target.rtype
    if wants_table(request.accept):
        include = included(request)
        rows = table(rtype, (resources.decoded(rtype, record) for record in page), include, resources.clock())
        return answer({**rows, "metadata": meta})
    if wants_metadata_of(request.accept, one=False):
        return answer(metadata_list((resources.decoded(rtype, record) for record in page), meta))
    return listed(resources, rtype, page, meta)


def listed(resources: Resources, rtype: ResourceType, page: Iterable[Record], meta: Object) -> Response:
    """The list itself. Items of built-in types say neither kind nor version, which the list does for them."""
    head = {"kind": rtype.listing_kind, "apiVersion": rtype.api_version, "metadata": meta}
    return Response(200, _joined(encode(head), resources.items(rtype, page)))


def _joined(head: bytes, items: list[bytes]) -> bytes:
    """The list around its items, which lack their first brace. They may be large together, and are copied once."""
    if not items:
        return head[:-1] + b',"items":[]}'
    items[0] = head[:-1] + b',"items":[{' + items[0]
    items[-1] += b"]}"
    return b",{".join(items)


def _limit(request: Request) -> int:
    """How many at most; 0 for all."""
    return max(int(request.query.get("limit") or 0), 0)


def _encode_token(revision: int, last: Record) -> str:
    return urlsafe_b64encode(encode(_Continue(revision, last.namespace, last.name))).decode()


def _decode_token(token: str) -> _Continue:
    try:
        return msgspec.json.decode(urlsafe_b64decode(token), type=_Continue)
    except (ValueError, msgspec.MsgspecError):
        raise status.bad_request("invalid continue token: continue key is not valid") from None

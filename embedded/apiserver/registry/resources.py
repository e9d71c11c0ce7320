"""What can be done to objects: create, change, delete, list. Knows types and their rules, nothing of HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from embedded.apiserver.apiextensions import definitions
from embedded.apiserver.apiextensions.definition_validation import definition_warnings
from embedded.apiserver.apimachinery import names, status
from embedded.apiserver.apimachinery.field_errors import bad_value, required
from embedded.apiserver.apimachinery.generated_names import random_suffix
from embedded.apiserver.apimachinery.objects import Clock, Object, copy, decode_object, dig, encode, metadata, rfc3339
from embedded.apiserver.apimachinery.resource_types import (
    CUSTOM_RESOURCE_DEFINITIONS,
    STORED_ONLY,
    Registry,
    ResourceType,
)
from embedded.apiserver.apimachinery.selectors import EVERYTHING, Filter
from embedded.apiserver.managedfields import tracking
from embedded.apiserver.registry import defaults, strategies
from embedded.apiserver.registry.node_restriction import check_node_write
from embedded.apiserver.request.user_info import INTERNAL, UserInfo
from embedded.apiserver.serialization import decoding
from embedded.apiserver.storage.object_store import Record, Store, check_size
from embedded.apiserver.validation import objects

_PREFIX_CHARACTERS = 58
_LAST_MOMENT = 253_402_300_799  # 9999-12-31T23:59:59Z, the last that RFC 3339 can write
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
CONTROLLERS = "kube-controller-manager"  # who writes where no client does


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a write is to be done; `warnings` collects what the client should be told besides.

    `repeated` is what strict decoding already holds against a body that is no object, such as a patch. `manager` is
    who owns what the write changes; an object that is being applied (`applies`) brings its managedFields along.
    """

    dry_run: bool = False
    field_validation: str = "Warn"
    warnings: list[str] = field(default_factory=list)
    repeated: tuple[str, ...] = ()
    manager: str = CONTROLLERS
    applies: bool = False
    user: UserInfo = INTERNAL  # who asks
    body_bytes: int = 0  # of the request


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """metav1.DeleteOptions; None means the caller left it to the type's default."""

    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False
    user: UserInfo = INTERNAL
    warnings: list[str] = field(default_factory=list)


_DEFAULT_DELETE = DeleteOptions()


@dataclass(slots=True)
class Draft:
    """A write on its way: `new` may be changed, and other writes may happen, until it is committed.

    `old` is what it replaces, None for a new object. `generated_name` is set when the server chose its name.
    """

    rtype: ResourceType
    new: Object
    old: Object | None
    options: WriteOptions
    subresource: str = ""
    generated_name: bool = False

    @property
    def namespace(self) -> str:
        return str(self.new["metadata"].get("namespace", ""))

    @property
    def of_other_kind(self) -> bool:
        """Whether it is no object of the type but what a sub-resource takes, such as a Binding."""
        return bool(self.new.get("kind", self.rtype.kind) != self.rtype.kind)

    @property
    def name(self) -> str:
        return str(self.new["metadata"]["name"])


class Resources:
    """The objects of one server. Every method is one atomic step; raises StatusError for what is refused."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock

    def stored_type(self, type_id: str) -> ResourceType | None:
        """The type of what is stored under an id, also while its definition serves no version of it."""
        found = self.registry.by_id(type_id)
        if found is None and (definition := self.find(CUSTOM_RESOURCE_DEFINITIONS, "", type_id)) is not None:
            return definitions.storage_type(definition)
        return found

    # -- reading -------------------------------------------------------------------------------------------

    def find(self, rtype: ResourceType, namespace: str, name: str) -> Object | None:
        record = self.store.get(rtype.id, namespace, name)
        return None if record is None else self.decoded(rtype, record)

    def get(self, rtype: ResourceType, namespace: str, name: str) -> Object:
        found = self.find(rtype, namespace, name)
        if found is None:
            raise status.not_found(rtype, name)
        return found

    def decoded(self, rtype: ResourceType, record: Record) -> Object:
        """The object as this version of its type shows it."""
        obj = decode_object(record.body)
        if rtype.form is not None:
            return rtype.form.shown(obj)
        obj["apiVersion"] = rtype.api_version
        return obj

    def encoded(self, rtype: ResourceType, record: Record) -> bytes:
        """Its bytes as this version of its type shows it; the stored bytes where that is the same."""
        if rtype.form is None and (rtype.custom is None or rtype.custom.only_version):
            return record.body
        return encode(self.decoded(rtype, record))

    def items(self, rtype: ResourceType, records: Iterable[Record]) -> list[bytes]:
        """Their bytes as they stand in a list, after the first brace; the list says kind and version of all.

        Items of a custom type say both for themselves.
        """
        if rtype.custom is not None:
            return [self.encoded(rtype, record)[1:] for record in records]
        if rtype.form is not None:
            return [encode(_unnamed(self.decoded(rtype, record)))[1:] for record in records]
        return [record.rest for record in records]

    def objects(self, rtype: ResourceType, wanted: Filter = EVERYTHING) -> Iterator[Object]:
        for record in self.store.select(rtype.id, wanted):
            yield self.decoded(rtype, record)

    # -- creating ------------------------------------------------------------------------------------------

    def create(self, rtype: ResourceType, namespace: str, obj: Object, options: WriteOptions | None = None) -> Object:
        """Store a new object: shape → name → default → admission → default again → validate."""
        return self.commit(self.complete(self.draft_create(rtype, namespace, obj, options)))

    def draft_create(
        self, rtype: ResourceType, namespace: str, obj: Object, options: WriteOptions | None = None
    ) -> Draft:
        """A new object as this server alone would have it, before anybody else is asked."""
        options = options or WriteOptions()
        obj = self.accepted(rtype, obj, options)
        named = bool(obj["metadata"].get("name"))
        self._identify(rtype, namespace, obj)
        draft = Draft(rtype, obj, None, options, generated_name=not named)
        self._check_place(draft)
        strategies.reset_status(rtype, obj)
        self._defaulted(rtype, obj)
        check_node_write(options.user, rtype, None, obj)
        strategies.admit_new(self, rtype, obj)
        return draft

    def _check_place(self, draft: Draft) -> None:
        strategies.check_namespace(self, draft.rtype, draft.new)
        strategies.check_definition(self, draft.rtype, draft.name)
        if self.store.get(draft.rtype.id, draft.namespace, draft.name) is not None:
            raise status.already_exists(draft.rtype, draft.name)

    def amend(self, draft: Draft, obj: Object) -> None:
        """Take what somebody else made of the draft's object, but for what is not theirs to settle."""
        rtype, was = draft.rtype, draft.new
        if draft.of_other_kind:
            draft.new = obj
            return
        obj = self.accepted(rtype, obj, WriteOptions(field_validation="Ignore"))
        kept = ("namespace", "uid", "creationTimestamp", "generation")
        obj["metadata"] |= {key: was["metadata"][key] for key in kept if key in was["metadata"]}
        obj["apiVersion"], obj["kind"] = rtype.api_version, rtype.kind
        if draft.old is None:
            obj["metadata"].setdefault("name", was["metadata"]["name"])
            strategies.reset_status(rtype, obj)
        else:
            obj["metadata"]["name"] = was["metadata"]["name"]
            strategies.keep_server_fields(rtype, draft.old, obj, draft.subresource)
        draft.new = self._defaulted(rtype, obj)

    def readmit(self, draft: Draft) -> None:
        """Let cluster state decide again, after somebody else changed the draft."""
        if draft.of_other_kind:
            return
        if draft.old is None:
            strategies.admit_new(self, draft.rtype, draft.new)
        elif not draft.subresource:
            strategies.admit_change(self, draft.rtype, draft.old, draft.new)

    def complete(self, draft: Draft) -> Draft:
        """Default again what admission left open, then validate."""
        draft.new = self._defaulted(draft.rtype, draft.new)
        self._validate(draft.rtype, draft.new, draft.old, draft.subresource)
        if draft.rtype.custom is not None:
            draft.options.warnings.extend(names.finalizer_warnings(draft.new, draft.old))
        if draft.old is None and (outcome := STORED_ONLY.get(draft.rtype.id)):
            told = f"{draft.rtype.kind} objects are only stored in the embedded cluster: {outcome}"
            draft.options.warnings.append(told)
        if draft.rtype is CUSTOM_RESOURCE_DEFINITIONS:
            draft.options.warnings.extend(definition_warnings(draft.new, draft.old))
        strategies.complete(draft.rtype, draft.new)
        return draft

    def commit(self, draft: Draft) -> Object:
        """Store a completed draft; raises 409 where another write came first, which only waiting makes possible."""
        self._follow_definition(draft)
        if draft.old is None:
            self._check_place(draft)
            return self._stored(draft.rtype, draft.new, draft.options)
        held = self.store.get(draft.rtype.id, draft.namespace, draft.name)
        if held is None or str(held.revision) != draft.old["metadata"]["resourceVersion"]:
            raise status.stale(draft.rtype, draft.name)
        return self._changed(draft.rtype, draft.old, draft.new, draft.options)

    def _follow_definition(self, draft: Draft) -> None:
        """Hold a custom object to its definition of this moment; raises 404 where that serves its version no more."""
        rtype = draft.rtype
        served = self.registry.by_path(rtype.group, rtype.version, rtype.plural)
        if rtype.custom is None or served is rtype:
            return
        if served is None:
            raise status.unknown_path()
        draft.rtype = served
        if served.custom != rtype.custom:
            accepted = self.accepted(served, draft.new, WriteOptions(field_validation="Ignore"))
            draft.new = self._defaulted(served, accepted)
            self._validate(served, draft.new, draft.old, draft.subresource)

    def accepted(self, rtype: ResourceType, obj: Object, options: WriteOptions) -> Object:
        """The object in the form it is kept: typed, without nulls, without fields its schema does not know."""
        decoded = decoding.decode_object(rtype, obj)
        told = [*options.repeated, *decoded.told]
        if told and options.field_validation == "Strict":
            raise status.undecodable(rtype, f"strict decoding error: {', '.join(told)}")
        if told and options.field_validation != "Ignore":
            options.warnings.extend(text for text in told if text not in options.warnings)
        return decoded.value

    def _identify(self, rtype: ResourceType, namespace: str, obj: Object) -> None:
        """Settle who the object is: names, uid, birth; what a client sends for the latter is not believed."""
        meta = metadata(obj)
        if not rtype.namespaced:
            meta.pop("namespace", None)
        elif (meta.get("namespace") or namespace) != namespace:
            raise status.misplaced()
        if rtype.namespaced:
            meta["namespace"] = namespace
        if meta.get("resourceVersion") not in (None, "", "0"):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = self._generated_name(rtype, meta)
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
            meta.pop(key, None)
        if (meta.get("generation") or 0) >= 0:  # else it is refused
            meta.pop("generation", None)
        meta["uid"] = str(uuid.uuid4())
        meta["creationTimestamp"] = rfc3339(self.clock())
        if rtype.generation:
            meta["generation"] = 1
        obj["apiVersion"], obj["kind"] = rtype.api_version, rtype.kind
        if not meta.get("name"):
            raise status.invalid(rtype, "", [required("metadata.name", "name or generateName is required")])

    def _generated_name(self, rtype: ResourceType, meta: Object) -> str:
        prefix = meta["generateName"][:_PREFIX_CHARACTERS]
        for _ in range(8):
            name = f"{prefix}{random_suffix()}"
            if self.store.get(rtype.id, meta.get("namespace", ""), name) is None:
                return name
        raise status.already_exists(rtype, name)

    def _defaulted(self, rtype: ResourceType, obj: Object) -> Object:
        if rtype.custom is not None:
            rtype.custom.default(obj)
            return obj
        defaults.apply_defaults(rtype, obj)
        return obj

    def _validate(self, rtype: ResourceType, obj: Object, old: Object | None, subresource: str = "") -> None:
        errors = list(islice(objects.errors(rtype, obj, old, subresource), status.MOST_ERRORS + 1))
        if errors:
            raise status.invalid(rtype, obj["metadata"]["name"], errors)

    def _stored(self, rtype: ResourceType, obj: Object, options: WriteOptions) -> Object:
        if options.dry_run:
            return obj
        if rtype.custom is not None:
            obj["apiVersion"] = rtype.custom.storage_api_version
        if rtype is CUSTOM_RESOURCE_DEFINITIONS:
            definitions.establish(obj, self.objects(rtype), self.clock())
            check_size(len(encode(obj)))  # before its types are served
            definitions.serve_and_conform(self.store, self.registry, obj)
        record = self.store.put(rtype, obj if rtype.form is None else rtype.form.stored(obj))
        return obj if rtype.custom is None and rtype.form is None else self.decoded(rtype, record)

    # -- changing ------------------------------------------------------------------------------------------

    def update(
        self,
        rtype: ResourceType,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> Object:
        """Replace an object by what `change` makes of a copy of it.

        A resourceVersion in the result that is not the live one is a conflict. A change that changes nothing
        keeps the resourceVersion and sends no event.
        """
        return self.commit(self.complete(self.draft_update(rtype, namespace, name, change, options, subresource)))

    def draft_update(
        self,
        rtype: ResourceType,
        namespace: str,
        name: str,
        change: Callable[[Object], Object],
        options: WriteOptions | None = None,
        subresource: str = "",
    ) -> Draft:
        """A changed object as this server alone would have it, before anybody else is asked."""
        options = options or WriteOptions()
        old = self.get(rtype, namespace, name)
        new = change(copy(old))
        sent = dig(new, "metadata.managedFields")  # what is kept cannot tell an empty list from none
        new = self.accepted(rtype, new, options)
        new["metadata"].pop("selfLink", None)  # Kubernetes stores none: whoever writes one fills nothing up by it
        self._check_identity(rtype, name, old, new)
        check_node_write(options.user, rtype, old, new)
        strategies.check_not_deleted_by(rtype, old, new, subresource)
        strategies.keep_server_fields(rtype, old, new, subresource)
        if not subresource:
            strategies.admit_change(self, rtype, old, new)
        draft = Draft(rtype, self._defaulted(rtype, new), old, options, subresource)
        self._track(draft, old, sent)
        return draft

    def _track(self, draft: Draft, old: Object, sent: Any) -> None:
        """Settle who owns what after a change, of objects that somebody has applied to."""
        meta = draft.new["metadata"]
        if draft.options.applies:
            meta["managedFields"] = sent
        elif sent or "managedFields" in old["metadata"]:
            author = tracking.FieldWriter(draft.options.manager, draft.subresource, self.clock())
            held = tracking.tracked(draft.rtype, old, draft.new, sent, author)
            tracking.set_managers(draft.new, held)

    def _changed(self, rtype: ResourceType, old: Object, new: Object, options: WriteOptions) -> Object:
        if new == old and not self._stored_otherwise(rtype, new):
            return old
        if rtype.generation and strategies.wanted_state(rtype, new) != strategies.wanted_state(rtype, old):
            new["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1
        if self._released(rtype, new):
            return new if options.dry_run else self._remove(rtype, new)
        return self._stored(rtype, new, options)

    def _stored_otherwise(self, rtype: ResourceType, obj: Object) -> bool:
        """Whether an object is stored under an earlier definition; writing it, even unchanged, migrates it."""
        meta = obj["metadata"]
        held = self.store.get(rtype.id, meta.get("namespace", ""), meta["name"])
        return held is not None and held.original is not None

    def _check_identity(self, rtype: ResourceType, name: str, old: Object, new: Object) -> None:
        meta, old_meta = metadata(new), old["metadata"]
        if not rtype.namespaced:
            meta.pop("namespace", None)
        if not meta.get("name"):
            raise status.nameless(name)
        if meta["name"] != name:
            raise status.misnamed(meta["name"], name)
        if rtype.namespaced and meta.setdefault("namespace", old_meta["namespace"]) != old_meta["namespace"]:
            raise status.misplaced()
        kind, api_version = new.setdefault("kind", rtype.kind), new.setdefault("apiVersion", rtype.api_version)
        if (kind, api_version) != (rtype.kind, rtype.api_version):
            raise status.bad_request(
                f"{api_version}, Kind={kind} in the body does not match {rtype.api_version}, Kind={rtype.kind}"
            )
        if meta.get("uid") not in (None, "", old_meta["uid"]):
            raise status.conflict(
                rtype,
                name,
                f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old_meta['uid']}",
            )
        if (asked := meta.get("resourceVersion")) not in (None, "", "0", old_meta["resourceVersion"]):
            if not asked.isdecimal():
                raise status.invalid(rtype, name, [bad_value("metadata.resourceVersion", asked, "must be a number")])
            raise status.stale(rtype, name)

    # -- deleting ------------------------------------------------------------------------------------------

    def delete(
        self, rtype: ResourceType, namespace: str, name: str, options: DeleteOptions = _DEFAULT_DELETE
    ) -> tuple[Object, bool]:
        """Delete, or begin to: the object in its last or terminating state, and whether it is gone."""
        old = self.get(rtype, namespace, name)
        check_preconditions(rtype, old, options.uid, options.resource_version)
        strategies.check_deletable(rtype, old)
        new = copy(old)
        meta = new["metadata"]
        grace = strategies.grace_seconds(rtype, old, options.grace_seconds)
        held = meta.get("finalizers") or []
        finalizers = _finalizers_for(held, options.propagation or strategies.default_propagation(rtype, held))
        if finalizers:
            meta["finalizers"] = finalizers
        begins = not meta.get("deletionTimestamp")
        if not begins:
            grace = min(grace, int(meta.get("deletionGracePeriodSeconds", 0)))
        if grace != meta.get("deletionGracePeriodSeconds") or begins:
            meta["deletionTimestamp"] = rfc3339(min(self.clock() + grace, _LAST_MOMENT))
            meta["deletionGracePeriodSeconds"] = grace
        strategies.mark_terminating(rtype, new)
        if self._released(rtype, new):
            return (new if options.dry_run else self._remove(rtype, new)), True
        if begins and "generation" in meta:
            meta["generation"] += 1
        if new != old and not options.dry_run:
            new = self._stored(rtype, new, WriteOptions())
        return new, False

    def _released(self, rtype: ResourceType, obj: Object) -> bool:
        """Whether nothing holds a deleted object back any more."""
        meta = obj["metadata"]
        if not meta.get("deletionTimestamp") or meta.get("finalizers"):
            return False
        return (
            not dig(obj, "spec.finalizers") if rtype.id == "namespaces" else not meta.get("deletionGracePeriodSeconds")
        )

    def _remove(self, rtype: ResourceType, obj: Object) -> Object:
        if rtype.custom is not None:
            obj["apiVersion"] = rtype.custom.storage_api_version
        record = self.store.remove(rtype, obj if rtype.form is None else rtype.form.stored(obj))
        if rtype is CUSTOM_RESOURCE_DEFINITIONS:
            name = obj["metadata"]["name"]
            definitions.withdraw(self.registry, name)
            if self.registry.by_id(name) is None:  # not a built-in type of that name
                self.store.forget(name)
            for other in list(self.objects(rtype)):  # one of them may have waited for the names
                if self.registry.by_id(other["metadata"]["name"]) is None:
                    self._stored(rtype, other, WriteOptions())
        return self.decoded(rtype, record)


def _unnamed(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def check_preconditions(rtype: ResourceType, old: Object, uid: str | None, resource_version: str | None) -> None:
    """Raises 409 where the live object is not the one that the caller means."""
    meta = old["metadata"]
    for label, asked, actual in (
        ("UID", uid, meta["uid"]),
        ("ResourceVersion", resource_version, meta["resourceVersion"]),
    ):
        if asked and asked != actual:
            raise status.conflict(
                rtype,
                meta["name"],
                f"Precondition failed: {label} in precondition: {asked}, {label} in object meta: {actual}",
            )


def _finalizers_for(finalizers: list[str], propagation: str | None) -> list[str]:
    """The finalizers that carry out the asked propagation, the others untouched."""
    kept = [name for name in finalizers if name not in (FOREGROUND, ORPHAN)] if propagation else finalizers
    wanted = {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(propagation or "", [])
    return [*kept, *wanted]

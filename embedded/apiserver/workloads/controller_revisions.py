"""The history of a DaemonSet's template, one ControllerRevision for each: `kubectl rollout history` and `undo`.

Source: kubernetes `pkg/controller/daemon/update.go`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from embedded.apiserver.apimachinery.objects import Object, dig, name_of, namespace_of
from embedded.apiserver.reconciling.template_hash import REVISION_HASH, template_hash, with_entry

_LONGEST_PREFIX = 223


def patch_of(daemon_set: Object) -> Object:
    """What brings a DaemonSet back to the template it has, as a strategic merge patch."""
    return {"spec": {"template": {**daemon_set["spec"]["template"], "$patch": "replace"}}}


@dataclass(frozen=True, slots=True)
class History:
    """The revision of the current template (None: not recorded yet), the number it should have, and the others.

    `surplus` are further revisions of the same template.
    """

    current: Object | None
    number: int
    old: tuple[Object, ...]
    surplus: tuple[Object, ...] = ()


def history_of(daemon_set: Object, revisions: Sequence[Object]) -> History:
    patch = patch_of(daemon_set)
    ordered = sorted(revisions, key=lambda each: (_number(each), name_of(each)))
    same = [each for each in ordered if each.get("data") == patch]
    old = tuple(each for each in ordered if each.get("data") != patch)
    number = max((_number(each) for each in old), default=0) + 1
    if not same:
        return History(None, number, old)
    return History(same[-1], max(number, _number(same[-1])), old, tuple(same[:-1]))


def _number(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def hash_of(revision: Object) -> str:
    """What the pods of this revision are labelled with."""
    return str(dig(revision, "metadata.labels", {}).get(REVISION_HASH) or name_of(revision))


def new_revision(daemon_set: Object, number: int) -> Object:
    """The record of the current template, without owner; its name follows from the template."""
    template = daemon_set["spec"]["template"]
    short = template_hash(template, dig(daemon_set, "status.collisionCount"))
    annotations = dig(daemon_set, "metadata.annotations")
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{name_of(daemon_set)[:_LONGEST_PREFIX]}-{short}",
            "namespace": namespace_of(daemon_set),
            "labels": with_entry(dig(template, "metadata.labels"), REVISION_HASH, short),
            **({"annotations": dict(annotations)} if annotations else {}),
        },
        "data": patch_of(daemon_set),
        "revision": number,
    }


def forgotten(daemon_set: Object, history: History, in_use: Collection[str]) -> tuple[str, ...]:
    """The oldest revisions beyond the limit that no pod is of; names."""
    surplus = len(history.old) - daemon_set["spec"]["revisionHistoryLimit"]
    unused = [name_of(each) for each in history.old if hash_of(each) not in in_use]
    return tuple(unused[: max(0, surplus)])

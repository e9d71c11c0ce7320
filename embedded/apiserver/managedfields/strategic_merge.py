"""Strategic merge patch by the rules of Kubernetes' own types."""

from __future__ import annotations

from typing import Any

from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.resource_types import ResourceType
from embedded.apiserver.apimachinery.status import bad_request
from embedded.apiserver.definitions.field_types import type_of
from embedded.apiserver.managedfields.merge_patch import MergeError
from embedded.apiserver.managedfields.merge_patch import strategic_merge as merged


def strategic_merge(rtype: ResourceType, target: Object, patch: Any) -> Object:
    """The target with the patch merged in by the rules of its type; raises 400 on a malformed patch."""
    try:
        return merged(target, patch, type_of(rtype))
    except MergeError as error:
        raise bad_request(str(error)) from None

"""Strategic merge patch by the rules of Kubernetes' own types."""

from __future__ import annotations

from typing import Any

from kube.strategic import MergeError
from kube.strategic import strategic_merge as merged
from local.apiserver.definitions.fieldtypes import type_of
from local.apiserver.objects import Object
from local.apiserver.registry import ResourceType
from local.apiserver.status import bad_request


def strategic_merge(rtype: ResourceType, target: Object, patch: Any) -> Object:
    """The target with the patch merged in by the rules of its type; raises 400 on a malformed patch."""
    try:
        return merged(target, patch, type_of(rtype))
    except MergeError as error:
        raise bad_request(str(error)) from None

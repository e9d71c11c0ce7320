"""A profile of colocation: which pods become batch, and what makes them so.

Source: Koordinator apis/config/v1alpha1/cluster_colocation_profile_types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from model.qos import QoSClass
from model.selector import Selector


class ColocationProfile(msgspec.Struct, frozen=True):
    """One ClusterColocationProfile.

    `namespaces` and `pods` select by labels; one that cannot be read, or is not given, selects everything. `fault` says
    what of the profile cannot be read: such a profile is applied to no pod. `probability_pct` is its share of the pods
    it selects. `patch` is a strategic merge patch of the pod. Keys of `label_keys` and `annotation_keys` are where a
    value is read, their values where it is written.
    """

    name: str
    namespaces: Selector = Selector()
    pods: Selector = Selector()
    fault: str = ""
    probability_pct: int = 100
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    label_keys: Mapping[str, str] = {}
    annotation_keys: Mapping[str, str] = {}
    label_suffixes: Mapping[str, str] = {}
    scheduler_name: str = ""
    qos: QoSClass = QoSClass.NONE
    priority_class_name: str = ""
    sub_priority: int | None = None
    patch: Mapping[str, Any] | None = None
    rewrites: bool = True

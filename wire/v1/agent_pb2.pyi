from wire.v1 import decision_pb2 as _decision_pb2
from wire.v1 import link_pb2 as _link_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetNodeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class NodeStatus(_message.Message):
    __slots__ = ("node", "agent_version", "observed_at_seconds", "usage", "system", "online", "best_effort", "capacity", "ready_reason", "link_connected", "ticks", "late_ticks", "brake_cuts", "brake_mechanism", "best_effort_limit_millis", "best_effort_request_millis", "host_applications", "unlisted_pods", "cgroups", "pressure", "ready_message", "wakes", "mode")
    class WakesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    OBSERVED_AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    CAPACITY_FIELD_NUMBER: _ClassVar[int]
    READY_REASON_FIELD_NUMBER: _ClassVar[int]
    LINK_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    TICKS_FIELD_NUMBER: _ClassVar[int]
    LATE_TICKS_FIELD_NUMBER: _ClassVar[int]
    BRAKE_CUTS_FIELD_NUMBER: _ClassVar[int]
    BRAKE_MECHANISM_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_LIMIT_MILLIS_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_REQUEST_MILLIS_FIELD_NUMBER: _ClassVar[int]
    HOST_APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    UNLISTED_PODS_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    READY_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    WAKES_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    node: str
    agent_version: str
    observed_at_seconds: float
    usage: _link_pb2.Usage
    system: _link_pb2.Usage
    online: _link_pb2.Usage
    best_effort: _link_pb2.Usage
    capacity: _link_pb2.Usage
    ready_reason: str
    link_connected: bool
    ticks: int
    late_ticks: int
    brake_cuts: int
    brake_mechanism: str
    best_effort_limit_millis: int
    best_effort_request_millis: int
    host_applications: _containers.RepeatedCompositeFieldContainer[NamedUsage]
    unlisted_pods: int
    cgroups: str
    pressure: _link_pb2.Pressure
    ready_message: str
    wakes: _containers.ScalarMap[str, int]
    mode: str
    def __init__(self, node: _Optional[str] = ..., agent_version: _Optional[str] = ..., observed_at_seconds: _Optional[float] = ..., usage: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., system: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., online: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., best_effort: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., capacity: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., ready_reason: _Optional[str] = ..., link_connected: _Optional[bool] = ..., ticks: _Optional[int] = ..., late_ticks: _Optional[int] = ..., brake_cuts: _Optional[int] = ..., brake_mechanism: _Optional[str] = ..., best_effort_limit_millis: _Optional[int] = ..., best_effort_request_millis: _Optional[int] = ..., host_applications: _Optional[_Iterable[_Union[NamedUsage, _Mapping]]] = ..., unlisted_pods: _Optional[int] = ..., cgroups: _Optional[str] = ..., pressure: _Optional[_Union[_link_pb2.Pressure, _Mapping]] = ..., ready_message: _Optional[str] = ..., wakes: _Optional[_Mapping[str, int]] = ..., mode: _Optional[str] = ...) -> None: ...

class NamedUsage(_message.Message):
    __slots__ = ("name", "usage")
    NAME_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    usage: _link_pb2.Usage
    def __init__(self, name: _Optional[str] = ..., usage: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ...) -> None: ...

class ListPodsRequest(_message.Message):
    __slots__ = ("best_effort_only",)
    BEST_EFFORT_ONLY_FIELD_NUMBER: _ClassVar[int]
    best_effort_only: bool
    def __init__(self, best_effort_only: _Optional[bool] = ...) -> None: ...

class ListPodsResponse(_message.Message):
    __slots__ = ("pods",)
    PODS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[PodUsage]
    def __init__(self, pods: _Optional[_Iterable[_Union[PodUsage, _Mapping]]] = ...) -> None: ...

class PodUsage(_message.Message):
    __slots__ = ("namespace", "name", "uid", "qos", "priority", "best_effort", "usage", "requests", "measured", "live", "aggregate", "containers", "throttled_ratio", "received_bytes", "sent_bytes", "read_bytes", "written_bytes", "oom_kills")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    QOS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    LIVE_FIELD_NUMBER: _ClassVar[int]
    AGGREGATE_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_RATIO_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    READ_BYTES_FIELD_NUMBER: _ClassVar[int]
    WRITTEN_BYTES_FIELD_NUMBER: _ClassVar[int]
    OOM_KILLS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    qos: str
    priority: str
    best_effort: bool
    usage: _link_pb2.Usage
    requests: _link_pb2.Usage
    measured: bool
    live: _link_pb2.Usage
    aggregate: _link_pb2.Usage
    containers: _containers.RepeatedCompositeFieldContainer[NamedUsage]
    throttled_ratio: float
    received_bytes: int
    sent_bytes: int
    read_bytes: int
    written_bytes: int
    oom_kills: int
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., qos: _Optional[str] = ..., priority: _Optional[str] = ..., best_effort: _Optional[bool] = ..., usage: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., requests: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., measured: _Optional[bool] = ..., live: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., aggregate: _Optional[_Union[_link_pb2.Usage, _Mapping]] = ..., containers: _Optional[_Iterable[_Union[NamedUsage, _Mapping]]] = ..., throttled_ratio: _Optional[float] = ..., received_bytes: _Optional[int] = ..., sent_bytes: _Optional[int] = ..., read_bytes: _Optional[int] = ..., written_bytes: _Optional[int] = ..., oom_kills: _Optional[int] = ...) -> None: ...

class ExplainReclaimableRequest(_message.Message):
    __slots__ = ("resource",)
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    resource: str
    def __init__(self, resource: _Optional[str] = ...) -> None: ...

class ExplainReclaimableResponse(_message.Message):
    __slots__ = ("decisions",)
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    decisions: _containers.RepeatedCompositeFieldContainer[_decision_pb2.Decision]
    def __init__(self, decisions: _Optional[_Iterable[_Union[_decision_pb2.Decision, _Mapping]]] = ...) -> None: ...

class ExplainLimitRequest(_message.Message):
    __slots__ = ("knob", "pods")
    KNOB_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    knob: str
    pods: bool
    def __init__(self, knob: _Optional[str] = ..., pods: _Optional[bool] = ...) -> None: ...

class ExplainLimitResponse(_message.Message):
    __slots__ = ("limits",)
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    limits: _containers.RepeatedCompositeFieldContainer[Limit]
    def __init__(self, limits: _Optional[_Iterable[_Union[Limit, _Mapping]]] = ...) -> None: ...

class Limit(_message.Message):
    __slots__ = ("decision", "path", "kernel_value", "matches", "decided_value", "owner")
    DECISION_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    KERNEL_VALUE_FIELD_NUMBER: _ClassVar[int]
    MATCHES_FIELD_NUMBER: _ClassVar[int]
    DECIDED_VALUE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    decision: _decision_pb2.Decision
    path: str
    kernel_value: str
    matches: bool
    decided_value: str
    owner: str
    def __init__(self, decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., path: _Optional[str] = ..., kernel_value: _Optional[str] = ..., matches: _Optional[bool] = ..., decided_value: _Optional[str] = ..., owner: _Optional[str] = ...) -> None: ...

class ExplainEvictionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ExplainEvictionsResponse(_message.Message):
    __slots__ = ("needs", "pending", "past")
    NEEDS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    needs: _containers.RepeatedCompositeFieldContainer[_decision_pb2.Decision]
    pending: _containers.RepeatedCompositeFieldContainer[PendingEviction]
    past: _containers.RepeatedCompositeFieldContainer[_decision_pb2.Decision]
    def __init__(self, needs: _Optional[_Iterable[_Union[_decision_pb2.Decision, _Mapping]]] = ..., pending: _Optional[_Iterable[_Union[PendingEviction, _Mapping]]] = ..., past: _Optional[_Iterable[_Union[_decision_pb2.Decision, _Mapping]]] = ...) -> None: ...

class PendingEviction(_message.Message):
    __slots__ = ("pod_uid", "frees", "since_seconds", "until_seconds", "notified_until_seconds")
    class FreesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    FREES_FIELD_NUMBER: _ClassVar[int]
    SINCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNTIL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NOTIFIED_UNTIL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    frees: _containers.ScalarMap[str, int]
    since_seconds: float
    until_seconds: float
    notified_until_seconds: float
    def __init__(self, pod_uid: _Optional[str] = ..., frees: _Optional[_Mapping[str, int]] = ..., since_seconds: _Optional[float] = ..., until_seconds: _Optional[float] = ..., notified_until_seconds: _Optional[float] = ...) -> None: ...

class WatchDecisionsRequest(_message.Message):
    __slots__ = ("subject_prefix", "history")
    SUBJECT_PREFIX_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    subject_prefix: str
    history: int
    def __init__(self, subject_prefix: _Optional[str] = ..., history: _Optional[int] = ...) -> None: ...

class GetSettingsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Settings(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: str
    def __init__(self, json: _Optional[str] = ...) -> None: ...

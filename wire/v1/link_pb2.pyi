from wire.v1 import decision_pb2 as _decision_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeMessage(_message.Message):
    __slots__ = ("sequence", "hello", "report", "decision", "checkpoint")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    REPORT_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    hello: Hello
    report: Report
    decision: DecisionNotice
    checkpoint: CheckpointReport
    def __init__(self, sequence: _Optional[int] = ..., hello: _Optional[_Union[Hello, _Mapping]] = ..., report: _Optional[_Union[Report, _Mapping]] = ..., decision: _Optional[_Union[DecisionNotice, _Mapping]] = ..., checkpoint: _Optional[_Union[CheckpointReport, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("node", "agent_version", "boot_id")
    NODE_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    node: str
    agent_version: str
    boot_id: str
    def __init__(self, node: _Optional[str] = ..., agent_version: _Optional[str] = ..., boot_id: _Optional[str] = ...) -> None: ...

class Report(_message.Message):
    __slots__ = ("observed_at_seconds", "node", "system", "online", "best_effort", "reclaimable", "pods", "pressure", "degraded_reason")
    OBSERVED_AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    SYSTEM_FIELD_NUMBER: _ClassVar[int]
    ONLINE_FIELD_NUMBER: _ClassVar[int]
    BEST_EFFORT_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    PRESSURE_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_REASON_FIELD_NUMBER: _ClassVar[int]
    observed_at_seconds: float
    node: Usage
    system: Usage
    online: Usage
    best_effort: Usage
    reclaimable: _containers.RepeatedCompositeFieldContainer[_decision_pb2.Decision]
    pods: _containers.RepeatedCompositeFieldContainer[BestEffortPod]
    pressure: Pressure
    degraded_reason: str
    def __init__(self, observed_at_seconds: _Optional[float] = ..., node: _Optional[_Union[Usage, _Mapping]] = ..., system: _Optional[_Union[Usage, _Mapping]] = ..., online: _Optional[_Union[Usage, _Mapping]] = ..., best_effort: _Optional[_Union[Usage, _Mapping]] = ..., reclaimable: _Optional[_Iterable[_Union[_decision_pb2.Decision, _Mapping]]] = ..., pods: _Optional[_Iterable[_Union[BestEffortPod, _Mapping]]] = ..., pressure: _Optional[_Union[Pressure, _Mapping]] = ..., degraded_reason: _Optional[str] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("cpu_millis", "memory_bytes")
    CPU_MILLIS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_millis: int
    memory_bytes: int
    def __init__(self, cpu_millis: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class Pressure(_message.Message):
    __slots__ = ("cpu_some_avg10_pct", "memory_some_avg10_pct", "memory_full_avg10_pct")
    CPU_SOME_AVG10_PCT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SOME_AVG10_PCT_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FULL_AVG10_PCT_FIELD_NUMBER: _ClassVar[int]
    cpu_some_avg10_pct: float
    memory_some_avg10_pct: float
    memory_full_avg10_pct: float
    def __init__(self, cpu_some_avg10_pct: _Optional[float] = ..., memory_some_avg10_pct: _Optional[float] = ..., memory_full_avg10_pct: _Optional[float] = ...) -> None: ...

class BestEffortPod(_message.Message):
    __slots__ = ("namespace", "name", "uid", "usage", "throttled_ratio")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    THROTTLED_RATIO_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    uid: str
    usage: Usage
    throttled_ratio: float
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., uid: _Optional[str] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., throttled_ratio: _Optional[float] = ...) -> None: ...

class DecisionNotice(_message.Message):
    __slots__ = ("decision",)
    DECISION_FIELD_NUMBER: _ClassVar[int]
    decision: _decision_pb2.Decision
    def __init__(self, decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ...) -> None: ...

class CheckpointReport(_message.Message):
    __slots__ = ("namespace", "pod", "pod_uid", "saved_at_seconds", "step", "begun_at_seconds", "checkpoint", "size_bytes", "sent_at_seconds")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    POD_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    SAVED_AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    BEGUN_AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    pod: str
    pod_uid: str
    saved_at_seconds: float
    step: int
    begun_at_seconds: float
    checkpoint: str
    size_bytes: int
    sent_at_seconds: float
    def __init__(self, namespace: _Optional[str] = ..., pod: _Optional[str] = ..., pod_uid: _Optional[str] = ..., saved_at_seconds: _Optional[float] = ..., step: _Optional[int] = ..., begun_at_seconds: _Optional[float] = ..., checkpoint: _Optional[str] = ..., size_bytes: _Optional[int] = ..., sent_at_seconds: _Optional[float] = ...) -> None: ...

class SchedulerMessage(_message.Message):
    __slots__ = ("acknowledged_sequence", "costs", "preemption", "withdrawal")
    ACKNOWLEDGED_SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_FIELD_NUMBER: _ClassVar[int]
    WITHDRAWAL_FIELD_NUMBER: _ClassVar[int]
    acknowledged_sequence: int
    costs: EvictionCosts
    preemption: PreemptionNotice
    withdrawal: PreemptionWithdrawal
    def __init__(self, acknowledged_sequence: _Optional[int] = ..., costs: _Optional[_Union[EvictionCosts, _Mapping]] = ..., preemption: _Optional[_Union[PreemptionNotice, _Mapping]] = ..., withdrawal: _Optional[_Union[PreemptionWithdrawal, _Mapping]] = ...) -> None: ...

class EvictionCosts(_message.Message):
    __slots__ = ("pods",)
    PODS_FIELD_NUMBER: _ClassVar[int]
    pods: _containers.RepeatedCompositeFieldContainer[EvictionCost]
    def __init__(self, pods: _Optional[_Iterable[_Union[EvictionCost, _Mapping]]] = ...) -> None: ...

class EvictionCost(_message.Message):
    __slots__ = ("pod_uid", "gang", "members_above_minimum", "checkpoint_age_seconds")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_ABOVE_MINIMUM_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    gang: str
    members_above_minimum: int
    checkpoint_age_seconds: float
    def __init__(self, pod_uid: _Optional[str] = ..., gang: _Optional[str] = ..., members_above_minimum: _Optional[int] = ..., checkpoint_age_seconds: _Optional[float] = ...) -> None: ...

class PreemptionNotice(_message.Message):
    __slots__ = ("pod_uid", "deadline_seconds", "reason")
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    deadline_seconds: float
    reason: str
    def __init__(self, pod_uid: _Optional[str] = ..., deadline_seconds: _Optional[float] = ..., reason: _Optional[str] = ...) -> None: ...

class PreemptionWithdrawal(_message.Message):
    __slots__ = ("pod_uid",)
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    pod_uid: str
    def __init__(self, pod_uid: _Optional[str] = ...) -> None: ...

from wire.v1 import agent_pb2 as _agent_pb2
from wire.v1 import decision_pb2 as _decision_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExplainPodRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ExplainPodResponse(_message.Message):
    __slots__ = ("node", "decision", "gang", "queue_position", "message", "preemption", "nearest", "nominated_node", "unserved", "scores", "runner_up")
    NODE_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_FIELD_NUMBER: _ClassVar[int]
    NEAREST_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_NODE_FIELD_NUMBER: _ClassVar[int]
    UNSERVED_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    RUNNER_UP_FIELD_NUMBER: _ClassVar[int]
    node: str
    decision: _decision_pb2.Decision
    gang: str
    queue_position: int
    message: str
    preemption: _decision_pb2.Decision
    nearest: str
    nominated_node: str
    unserved: _containers.RepeatedScalarFieldContainer[str]
    scores: _containers.RepeatedCompositeFieldContainer[ScoreTerm]
    runner_up: str
    def __init__(self, node: _Optional[str] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., gang: _Optional[str] = ..., queue_position: _Optional[int] = ..., message: _Optional[str] = ..., preemption: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., nearest: _Optional[str] = ..., nominated_node: _Optional[str] = ..., unserved: _Optional[_Iterable[str]] = ..., scores: _Optional[_Iterable[_Union[ScoreTerm, _Mapping]]] = ..., runner_up: _Optional[str] = ...) -> None: ...

class ScoreTerm(_message.Message):
    __slots__ = ("name", "weight", "chosen", "runner_up")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    RUNNER_UP_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: int
    chosen: int
    runner_up: int
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[int] = ..., chosen: _Optional[int] = ..., runner_up: _Optional[int] = ...) -> None: ...

class ExplainGangRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ExplainGangResponse(_message.Message):
    __slots__ = ("gang", "decision", "queue_position", "message", "preemption", "nearest", "nominated_nodes")
    class NominatedNodesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    GANG_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    QUEUE_POSITION_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_FIELD_NUMBER: _ClassVar[int]
    NEAREST_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_NODES_FIELD_NUMBER: _ClassVar[int]
    gang: Gang
    decision: _decision_pb2.Decision
    queue_position: int
    message: str
    preemption: _decision_pb2.Decision
    nearest: str
    nominated_nodes: _containers.ScalarMap[str, str]
    def __init__(self, gang: _Optional[_Union[Gang, _Mapping]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., queue_position: _Optional[int] = ..., message: _Optional[str] = ..., preemption: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., nearest: _Optional[str] = ..., nominated_nodes: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Gang(_message.Message):
    __slots__ = ("namespace", "name", "min_member", "members", "scheduled", "problem", "reason")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    MIN_MEMBER_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    min_member: int
    members: int
    scheduled: int
    problem: str
    reason: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., min_member: _Optional[int] = ..., members: _Optional[int] = ..., scheduled: _Optional[int] = ..., problem: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ListQueuesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListQueuesResponse(_message.Message):
    __slots__ = ("queues",)
    QUEUES_FIELD_NUMBER: _ClassVar[int]
    queues: _containers.RepeatedCompositeFieldContainer[Queue]
    def __init__(self, queues: _Optional[_Iterable[_Union[Queue, _Mapping]]] = ...) -> None: ...

class Queue(_message.Message):
    __slots__ = ("name", "weight", "pending_workloads", "dominant_share", "dominant_resource")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PENDING_WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_SHARE_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: int
    pending_workloads: int
    dominant_share: float
    dominant_resource: str
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[int] = ..., pending_workloads: _Optional[int] = ..., dominant_share: _Optional[float] = ..., dominant_resource: _Optional[str] = ...) -> None: ...

class ListGangsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGangsResponse(_message.Message):
    __slots__ = ("gangs",)
    GANGS_FIELD_NUMBER: _ClassVar[int]
    gangs: _containers.RepeatedCompositeFieldContainer[Gang]
    def __init__(self, gangs: _Optional[_Iterable[_Union[Gang, _Mapping]]] = ...) -> None: ...

class ListNodesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListNodesResponse(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeRoom]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeRoom, _Mapping]]] = ...) -> None: ...

class NodeRoom(_message.Message):
    __slots__ = ("node", "allocatable", "requested", "link_connected", "report_age_seconds")
    class AllocatableEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class RequestedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATABLE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_FIELD_NUMBER: _ClassVar[int]
    LINK_CONNECTED_FIELD_NUMBER: _ClassVar[int]
    REPORT_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    node: str
    allocatable: _containers.ScalarMap[str, int]
    requested: _containers.ScalarMap[str, int]
    link_connected: bool
    report_age_seconds: float
    def __init__(self, node: _Optional[str] = ..., allocatable: _Optional[_Mapping[str, int]] = ..., requested: _Optional[_Mapping[str, int]] = ..., link_connected: _Optional[bool] = ..., report_age_seconds: _Optional[float] = ...) -> None: ...

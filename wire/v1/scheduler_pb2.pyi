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
    __slots__ = ("node", "decision", "gang", "queue_position", "message", "preemption", "nearest", "nominated_node", "unserved", "scores", "runner_up", "queue", "stage", "shortages")
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
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SHORTAGES_FIELD_NUMBER: _ClassVar[int]
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
    queue: str
    stage: str
    shortages: _containers.RepeatedCompositeFieldContainer[QuotaShortage]
    def __init__(self, node: _Optional[str] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., gang: _Optional[str] = ..., queue_position: _Optional[int] = ..., message: _Optional[str] = ..., preemption: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., nearest: _Optional[str] = ..., nominated_node: _Optional[str] = ..., unserved: _Optional[_Iterable[str]] = ..., scores: _Optional[_Iterable[_Union[ScoreTerm, _Mapping]]] = ..., runner_up: _Optional[str] = ..., queue: _Optional[str] = ..., stage: _Optional[str] = ..., shortages: _Optional[_Iterable[_Union[QuotaShortage, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("gang", "decision", "queue_position", "message", "preemption", "nearest", "nominated_nodes", "queue", "stage", "shortages")
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
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    SHORTAGES_FIELD_NUMBER: _ClassVar[int]
    gang: Gang
    decision: _decision_pb2.Decision
    queue_position: int
    message: str
    preemption: _decision_pb2.Decision
    nearest: str
    nominated_nodes: _containers.ScalarMap[str, str]
    queue: str
    stage: str
    shortages: _containers.RepeatedCompositeFieldContainer[QuotaShortage]
    def __init__(self, gang: _Optional[_Union[Gang, _Mapping]] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., queue_position: _Optional[int] = ..., message: _Optional[str] = ..., preemption: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., nearest: _Optional[str] = ..., nominated_nodes: _Optional[_Mapping[str, str]] = ..., queue: _Optional[str] = ..., stage: _Optional[str] = ..., shortages: _Optional[_Iterable[_Union[QuotaShortage, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("name", "weight", "pending_workloads", "dominant_share", "dominant_resource", "parent", "state", "order", "children", "cells", "running_workloads", "position", "problem", "source", "unweighted_share", "rules")
    NAME_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    PENDING_WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_SHARE_FIELD_NUMBER: _ClassVar[int]
    DOMINANT_RESOURCE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    CELLS_FIELD_NUMBER: _ClassVar[int]
    RUNNING_WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    UNWEIGHTED_SHARE_FIELD_NUMBER: _ClassVar[int]
    RULES_FIELD_NUMBER: _ClassVar[int]
    name: str
    weight: int
    pending_workloads: int
    dominant_share: float
    dominant_resource: str
    parent: str
    state: str
    order: str
    children: _containers.RepeatedScalarFieldContainer[str]
    cells: _containers.RepeatedCompositeFieldContainer[QueueCell]
    running_workloads: int
    position: int
    problem: str
    source: str
    unweighted_share: float
    rules: QueueRules
    def __init__(self, name: _Optional[str] = ..., weight: _Optional[int] = ..., pending_workloads: _Optional[int] = ..., dominant_share: _Optional[float] = ..., dominant_resource: _Optional[str] = ..., parent: _Optional[str] = ..., state: _Optional[str] = ..., order: _Optional[str] = ..., children: _Optional[_Iterable[str]] = ..., cells: _Optional[_Iterable[_Union[QueueCell, _Mapping]]] = ..., running_workloads: _Optional[int] = ..., position: _Optional[int] = ..., problem: _Optional[str] = ..., source: _Optional[str] = ..., unweighted_share: _Optional[float] = ..., rules: _Optional[_Union[QueueRules, _Mapping]] = ...) -> None: ...

class QueueCell(_message.Message):
    __slots__ = ("flavor", "resource", "guaranteed", "nominal", "maximum", "fair_share", "entitled", "used", "nominated", "demand", "borrowed", "lent", "headroom", "borrowing_limit", "lending_limit", "weight")
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    GUARANTEED_FIELD_NUMBER: _ClassVar[int]
    NOMINAL_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    FAIR_SHARE_FIELD_NUMBER: _ClassVar[int]
    ENTITLED_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    NOMINATED_FIELD_NUMBER: _ClassVar[int]
    DEMAND_FIELD_NUMBER: _ClassVar[int]
    BORROWED_FIELD_NUMBER: _ClassVar[int]
    LENT_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_FIELD_NUMBER: _ClassVar[int]
    BORROWING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    LENDING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    flavor: str
    resource: str
    guaranteed: int
    nominal: int
    maximum: int
    fair_share: int
    entitled: int
    used: int
    nominated: int
    demand: int
    borrowed: int
    lent: int
    headroom: int
    borrowing_limit: int
    lending_limit: int
    weight: int
    def __init__(self, flavor: _Optional[str] = ..., resource: _Optional[str] = ..., guaranteed: _Optional[int] = ..., nominal: _Optional[int] = ..., maximum: _Optional[int] = ..., fair_share: _Optional[int] = ..., entitled: _Optional[int] = ..., used: _Optional[int] = ..., nominated: _Optional[int] = ..., demand: _Optional[int] = ..., borrowed: _Optional[int] = ..., lent: _Optional[int] = ..., headroom: _Optional[int] = ..., borrowing_limit: _Optional[int] = ..., lending_limit: _Optional[int] = ..., weight: _Optional[int] = ...) -> None: ...

class QueueRules(_message.Message):
    __slots__ = ("lenders", "reclaimable", "preemptors", "grace_seconds", "max_jobs", "max_gpus_per_job", "min_priority", "max_priority", "namespaces")
    LENDERS_FIELD_NUMBER: _ClassVar[int]
    RECLAIMABLE_FIELD_NUMBER: _ClassVar[int]
    PREEMPTORS_FIELD_NUMBER: _ClassVar[int]
    GRACE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MAX_JOBS_FIELD_NUMBER: _ClassVar[int]
    MAX_GPUS_PER_JOB_FIELD_NUMBER: _ClassVar[int]
    MIN_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    MAX_PRIORITY_FIELD_NUMBER: _ClassVar[int]
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    lenders: _containers.RepeatedScalarFieldContainer[str]
    reclaimable: bool
    preemptors: _containers.RepeatedScalarFieldContainer[str]
    grace_seconds: float
    max_jobs: int
    max_gpus_per_job: int
    min_priority: int
    max_priority: int
    namespaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, lenders: _Optional[_Iterable[str]] = ..., reclaimable: _Optional[bool] = ..., preemptors: _Optional[_Iterable[str]] = ..., grace_seconds: _Optional[float] = ..., max_jobs: _Optional[int] = ..., max_gpus_per_job: _Optional[int] = ..., min_priority: _Optional[int] = ..., max_priority: _Optional[int] = ..., namespaces: _Optional[_Iterable[str]] = ...) -> None: ...

class ExplainQueueRequest(_message.Message):
    __slots__ = ("name",)
    NAME_FIELD_NUMBER: _ClassVar[int]
    name: str
    def __init__(self, name: _Optional[str] = ...) -> None: ...

class ExplainQueueResponse(_message.Message):
    __slots__ = ("queue", "loans", "jobs", "waiting")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    LOANS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    queue: Queue
    loans: _containers.RepeatedCompositeFieldContainer[Loan]
    jobs: _containers.RepeatedCompositeFieldContainer[QueuedJob]
    waiting: int
    def __init__(self, queue: _Optional[_Union[Queue, _Mapping]] = ..., loans: _Optional[_Iterable[_Union[Loan, _Mapping]]] = ..., jobs: _Optional[_Iterable[_Union[QueuedJob, _Mapping]]] = ..., waiting: _Optional[int] = ...) -> None: ...

class Loan(_message.Message):
    __slots__ = ("lender", "borrower", "flavor", "resource", "amount")
    LENDER_FIELD_NUMBER: _ClassVar[int]
    BORROWER_FIELD_NUMBER: _ClassVar[int]
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    AMOUNT_FIELD_NUMBER: _ClassVar[int]
    lender: str
    borrower: str
    flavor: str
    resource: str
    amount: int
    def __init__(self, lender: _Optional[str] = ..., borrower: _Optional[str] = ..., flavor: _Optional[str] = ..., resource: _Optional[str] = ..., amount: _Optional[int] = ...) -> None: ...

class QueuedJob(_message.Message):
    __slots__ = ("name", "queue", "position", "stage", "reason", "detail", "asked", "held")
    class AskedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class HeldEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    POSITION_FIELD_NUMBER: _ClassVar[int]
    STAGE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    name: str
    queue: str
    position: int
    stage: str
    reason: str
    detail: str
    asked: _containers.ScalarMap[str, int]
    held: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., queue: _Optional[str] = ..., position: _Optional[int] = ..., stage: _Optional[str] = ..., reason: _Optional[str] = ..., detail: _Optional[str] = ..., asked: _Optional[_Mapping[str, int]] = ..., held: _Optional[_Mapping[str, int]] = ...) -> None: ...

class QuotaShortage(_message.Message):
    __slots__ = ("flavor", "resource", "queue", "bound", "asked", "room")
    FLAVOR_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    BOUND_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    ROOM_FIELD_NUMBER: _ClassVar[int]
    flavor: str
    resource: str
    queue: str
    bound: str
    asked: int
    room: int
    def __init__(self, flavor: _Optional[str] = ..., resource: _Optional[str] = ..., queue: _Optional[str] = ..., bound: _Optional[str] = ..., asked: _Optional[int] = ..., room: _Optional[int] = ...) -> None: ...

class ExplainJobRequest(_message.Message):
    __slots__ = ("namespace", "name")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ExplainJobResponse(_message.Message):
    __slots__ = ("namespace", "name", "job", "path", "members", "scheduled", "needed", "message", "nearest", "decision", "preemption", "shortages", "ahead", "ahead_count", "progress", "start", "lost_seconds", "saved_seconds", "told_until_seconds")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    SCHEDULED_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    NEAREST_FIELD_NUMBER: _ClassVar[int]
    DECISION_FIELD_NUMBER: _ClassVar[int]
    PREEMPTION_FIELD_NUMBER: _ClassVar[int]
    SHORTAGES_FIELD_NUMBER: _ClassVar[int]
    AHEAD_FIELD_NUMBER: _ClassVar[int]
    AHEAD_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    LOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SAVED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TOLD_UNTIL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    job: QueuedJob
    path: _containers.RepeatedScalarFieldContainer[str]
    members: int
    scheduled: int
    needed: int
    message: str
    nearest: str
    decision: _decision_pb2.Decision
    preemption: _decision_pb2.Decision
    shortages: _containers.RepeatedCompositeFieldContainer[QuotaShortage]
    ahead: _containers.RepeatedCompositeFieldContainer[QueuedJob]
    ahead_count: int
    progress: JobProgress
    start: StartEstimate
    lost_seconds: float
    saved_seconds: float
    told_until_seconds: float
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., job: _Optional[_Union[QueuedJob, _Mapping]] = ..., path: _Optional[_Iterable[str]] = ..., members: _Optional[int] = ..., scheduled: _Optional[int] = ..., needed: _Optional[int] = ..., message: _Optional[str] = ..., nearest: _Optional[str] = ..., decision: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., preemption: _Optional[_Union[_decision_pb2.Decision, _Mapping]] = ..., shortages: _Optional[_Iterable[_Union[QuotaShortage, _Mapping]]] = ..., ahead: _Optional[_Iterable[_Union[QueuedJob, _Mapping]]] = ..., ahead_count: _Optional[int] = ..., progress: _Optional[_Union[JobProgress, _Mapping]] = ..., start: _Optional[_Union[StartEstimate, _Mapping]] = ..., lost_seconds: _Optional[float] = ..., saved_seconds: _Optional[float] = ..., told_until_seconds: _Optional[float] = ...) -> None: ...

class StartEstimate(_message.Message):
    __slots__ = ("start_seconds", "earliest_seconds", "latest_seconds", "basis", "ends", "why", "made_seconds")
    START_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EARLIEST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LATEST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    ENDS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    MADE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    start_seconds: float
    earliest_seconds: float
    latest_seconds: float
    basis: str
    ends: _containers.RepeatedCompositeFieldContainer[ExpectedEnd]
    why: str
    made_seconds: float
    def __init__(self, start_seconds: _Optional[float] = ..., earliest_seconds: _Optional[float] = ..., latest_seconds: _Optional[float] = ..., basis: _Optional[str] = ..., ends: _Optional[_Iterable[_Union[ExpectedEnd, _Mapping]]] = ..., why: _Optional[str] = ..., made_seconds: _Optional[float] = ...) -> None: ...

class ExpectedEnd(_message.Message):
    __slots__ = ("name", "end_seconds", "basis", "runs", "of")
    NAME_FIELD_NUMBER: _ClassVar[int]
    END_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    name: str
    end_seconds: float
    basis: str
    runs: int
    of: str
    def __init__(self, name: _Optional[str] = ..., end_seconds: _Optional[float] = ..., basis: _Optional[str] = ..., runs: _Optional[int] = ..., of: _Optional[str] = ...) -> None: ...

class JobProgress(_message.Message):
    __slots__ = ("kind", "phase", "reason", "message", "since_seconds", "created_seconds", "began_seconds", "ended_seconds", "failures", "most_failures", "evictions", "tasks", "nodes", "events")
    KIND_FIELD_NUMBER: _ClassVar[int]
    PHASE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    SINCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CREATED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BEGAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ENDED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    MOST_FAILURES_FIELD_NUMBER: _ClassVar[int]
    EVICTIONS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    kind: str
    phase: str
    reason: str
    message: str
    since_seconds: float
    created_seconds: float
    began_seconds: float
    ended_seconds: float
    failures: int
    most_failures: int
    evictions: int
    tasks: _containers.RepeatedCompositeFieldContainer[TaskProgress]
    nodes: _containers.RepeatedScalarFieldContainer[str]
    events: _containers.RepeatedCompositeFieldContainer[ProgressEvent]
    def __init__(self, kind: _Optional[str] = ..., phase: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ..., since_seconds: _Optional[float] = ..., created_seconds: _Optional[float] = ..., began_seconds: _Optional[float] = ..., ended_seconds: _Optional[float] = ..., failures: _Optional[int] = ..., most_failures: _Optional[int] = ..., evictions: _Optional[int] = ..., tasks: _Optional[_Iterable[_Union[TaskProgress, _Mapping]]] = ..., nodes: _Optional[_Iterable[str]] = ..., events: _Optional[_Iterable[_Union[ProgressEvent, _Mapping]]] = ...) -> None: ...

class TaskProgress(_message.Message):
    __slots__ = ("name", "pods")
    class PodsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    name: str
    pods: _containers.ScalarMap[str, int]
    def __init__(self, name: _Optional[str] = ..., pods: _Optional[_Mapping[str, int]] = ...) -> None: ...

class ProgressEvent(_message.Message):
    __slots__ = ("reason", "message", "at_seconds", "warning")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    reason: str
    message: str
    at_seconds: float
    warning: bool
    def __init__(self, reason: _Optional[str] = ..., message: _Optional[str] = ..., at_seconds: _Optional[float] = ..., warning: _Optional[bool] = ...) -> None: ...

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

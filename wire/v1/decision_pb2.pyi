from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Term(_message.Message):
    __slots__ = ("name", "value", "note")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: int
    note: str
    def __init__(self, name: _Optional[str] = ..., value: _Optional[int] = ..., note: _Optional[str] = ...) -> None: ...

class Decision(_message.Message):
    __slots__ = ("subject", "name", "value", "unit", "reason", "terms", "policy", "at_seconds", "detail", "text")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    AT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    subject: str
    name: str
    value: int
    unit: str
    reason: str
    terms: _containers.RepeatedCompositeFieldContainer[Term]
    policy: str
    at_seconds: float
    detail: str
    text: str
    def __init__(self, subject: _Optional[str] = ..., name: _Optional[str] = ..., value: _Optional[int] = ..., unit: _Optional[str] = ..., reason: _Optional[str] = ..., terms: _Optional[_Iterable[_Union[Term, _Mapping]]] = ..., policy: _Optional[str] = ..., at_seconds: _Optional[float] = ..., detail: _Optional[str] = ..., text: _Optional[str] = ...) -> None: ...

"""Evictions that a node's agent asks for, judged by the pod as it is stored at that moment.

Policy `sublet-agent-own-pods` judges them first, by the API server's own copy of the pods. What that does not have yet
it lets pass: a pod that was made some milliseconds ago, whosever it is. The uid that the Eviction names binds the
verdict to the pod it is about: whatever has that name by the time the API server acts, no other pod is evicted.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from admission.core.evictions import refusal
from admission.ports import FindPod
from admission.reviewer import UNAVAILABLE, Malformed, ReviewAnswer, ReviewRequest, unknown
from model.fault import KubernetesFault

_NODE = "authentication.kubernetes.io/node-name"
_NOT_FOUND = 404
_AT_ONCE = 8
"""Of one node: twice what its agent asks for at once. Whoever asks for more with its token would make us too slow to be
waited for, and what nobody judges passes."""
_UNREADABLE = "Unreadable"


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    extra: dict[str, list[str]] | None = None


class _Preconditions(msgspec.Struct, frozen=True):
    uid: str | None = None


class _DeleteOptions(msgspec.Struct, frozen=True):
    preconditions: _Preconditions | None = None


class _Eviction(msgspec.Struct, frozen=True, rename="camel"):
    """policy/v1 and policy/v1beta1 alike."""

    delete_options: _DeleteOptions | None = None


class EvictionReviewer:
    """`agents` is the user name of all agents; `find_pod` asks the API server for the pod as it is stored."""

    def __init__(self, agents: str, find_pod: FindPod) -> None:
        self._agents = agents
        self._find_pod = find_pod
        self._judging: Counter[str] = Counter()

    async def answer(self, request: ReviewRequest) -> ReviewAnswer:
        """Raises Malformed where the request holds no Eviction."""
        if request.kind.kind != "Eviction":
            return unknown(request)
        try:
            user = msgspec.json.decode(request.user_info, type=_User)
            uid = _uid(msgspec.json.decode(request.object, type=_Eviction | None))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Malformed(f"request: {error}") from error
        # An API server without match conditions (before 1.28) asks about everybody's.
        if user.username != self._agents:
            return ReviewAnswer(request)
        if not uid:
            where = f"Eviction {request.namespace}/{request.name}"
            return ReviewAnswer(
                request, f"{where}: deleteOptions.preconditions.uid is missing; write the uid of the pod"
            )
        return await self._in_turn(request, uid, next(iter((user.extra or {}).get(_NODE) or ()), ""))

    async def _in_turn(self, request: ReviewRequest, uid: str, node: str) -> ReviewAnswer:
        """An agent tries again what is unavailable. Without a node in their tokens all agents would share a turn."""
        if node and self._judging[node] >= _AT_ONCE:
            where = f"Eviction {request.namespace}/{request.name}"
            told = f"{where}: {_AT_ONCE} of node {node} are being judged; ask for fewer at once"
            return ReviewAnswer(request, told, code=UNAVAILABLE)
        self._judging[node] += 1
        try:
            return await self._judged(request, uid, node)
        finally:
            self._judging[node] -= 1
            if not self._judging[node]:
                del self._judging[node]

    async def _judged(self, request: ReviewRequest, uid: str, node: str) -> ReviewAnswer:
        try:
            pod = await self._find_pod(request.namespace, request.name)
        except KubernetesFault as fault:
            return _unjudged(request, fault)
        # Whoever knows a uid knew it after its pod was stored, and this read came later still: that pod is gone for
        # good, and the API server says so itself.
        if pod.uid != uid:
            return ReviewAnswer(request)
        return ReviewAnswer(request, refusal(pod, node))


def _uid(eviction: _Eviction | None) -> str:
    preconditions = eviction and eviction.delete_options and eviction.delete_options.preconditions
    return (preconditions.uid or "") if preconditions else ""


def _unjudged(request: ReviewRequest, fault: KubernetesFault) -> ReviewAnswer:
    """A pod that is not there is the API server's to tell of, and one that cannot be read is nobody's to evict.

    Any other failure is an outage, in which a node that runs short of memory must still get rid of batch pods: as with
    the webhook's failure policy, the API server's own policies stand alone then.
    """
    if fault.status == _NOT_FOUND:
        return ReviewAnswer(request)
    if fault.reason == _UNREADABLE:
        return ReviewAnswer(request, f"Pod {request.namespace}/{request.name}: {fault.what}; correct the pod")
    return ReviewAnswer(request, warnings=(f"let pass unjudged, since the pod could not be read: {fault.what}",))

"""The life of one simulated pod: created, running, ended, started again. Pure; times are Unix seconds.

A pod says itself how long it runs (simulated seconds), how it ends, and how much of its requests it uses:

    sublet.dev/simulated-run-seconds: "30"          without it it runs until it is deleted
    sublet.dev/simulated-exit-code: "1"             0 without it
    sublet.dev/simulated-usage: cpu=0.8,memory=0.5  or one number for both; 0.6 without it
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum

import msgspec

import model.qos
from embedded.kubernetes_qos import KubernetesQoS
from embedded.node.objects.pod import PodContainer, PodObject
from embedded.node.pods.admission import Rejection
from embedded.node.pods.pod_view import ContainerView, PodView, Running, State, Terminated, Waiting
from embedded.node.pods.restarts import delay_seconds, quick_ends, restarts
from local.simnodes.settings import Pace
from local.simnodes.usage import UsageShare
from model.fault import ConfigurationFault

RUN_SECONDS = "sublet.dev/simulated-run-seconds"
EXIT_CODE = "sublet.dev/simulated-exit-code"
USAGE = "sublet.dev/simulated-usage"
TERMINATED_EXIT_CODE = 143
"""Of a process that SIGTERM ended: 128 + 15."""
_USUAL_RATIO = 0.6
_MOST_RATIO = 10.0
_BACKOFF_SECONDS = 10.0


class PodStage(Enum):
    """Where a pod stands."""

    CREATING = "creating"
    RUNNING = "running"
    BACKING_OFF = "backing off"
    OVER = "over"
    GONE = "gone"


class PodPlan(msgspec.Struct, frozen=True):
    """What a pod says of itself, and what its spec and the pace add. `run_seconds` None: until it is deleted."""

    pace: Pace
    restart_policy: str | None = None
    run_seconds: float | None = None
    exit_code: int = 0
    share: UsageShare = UsageShare(_USUAL_RATIO, _USUAL_RATIO)
    deadline_seconds: float | None = None


class PodLife(msgspec.Struct, frozen=True):
    """`next_at` is when the stage changes by itself, None for never; `began` when the node took the pod in.

    `end` is the end of the last run, `quick_ends` how many in a row came soon; a refused pod was never `taken_in`.
    """

    stage: PodStage
    began: float
    next_at: float | None = None
    started: float = 0.0
    end: Terminated | None = None
    restart_count: int = 0
    quick_ends: int = 0
    failure: Rejection | None = None
    stopping: bool = False
    taken_in: bool = True

    @property
    def holds_resources(self) -> bool:
        return self.stage not in (PodStage.OVER, PodStage.GONE)


def plan_of(pod: PodObject, pace: Pace) -> PodPlan:
    """Raises ConfigurationFault naming the annotation that cannot be read."""
    annotations = pod.metadata.annotations or {}
    seconds = _number(annotations, RUN_SECONDS, "seconds of 0 or more")
    code = _number(annotations, EXIT_CODE, "a whole number, 0 to 255")
    if code is not None and (code != int(code) or code > 255):
        raise _unreadable(EXIT_CODE, annotations[EXIT_CODE], "a whole number, 0 to 255")
    return PodPlan(
        pace,
        pod.spec.restart_policy,
        None if seconds is None else seconds / pace.factor,
        int(code or 0),
        _share(annotations.get(USAGE)),
        pod.spec.active_deadline_seconds,
    )


def admitted(plan: PodPlan, now: float) -> PodLife:
    """Its containers are being created."""
    return _bounded(PodLife(PodStage.CREATING, now, now + plan.pace.start), plan)


def resumed(plan: PodPlan, began: float, restart_count: int, now: float) -> PodLife:
    """A pod that runs already, as an earlier simulation left it: its present run began when the pod did."""
    life = PodLife(PodStage.RUNNING, began, started=began, restart_count=restart_count)
    end = None if plan.run_seconds is None else max(began + plan.run_seconds, now)
    return _bounded(msgspec.structs.replace(life, next_at=end), plan)


def refused(rejection: Rejection, now: float) -> PodLife:
    return PodLife(PodStage.OVER, now, failure=rejection, taken_in=False)


def deleted(life: PodLife, plan: PodPlan, grace_seconds: float, now: float) -> PodLife:
    """Asked to end; what asks again with less grace hastens it."""
    at = now + min(plan.pace.stop, max(grace_seconds, 0.0))
    sooner = min(at, life.next_at) if life.stopping and life.next_at is not None else at
    return msgspec.structs.replace(life, next_at=sooner, stopping=True)


def advanced(life: PodLife, plan: PodPlan, now: float) -> PodLife:
    """What follows at `next_at`; the same life where nothing does."""
    if life.stopping:
        return _stopped(life, now)
    if plan.deadline_seconds is not None and now >= life.began + plan.deadline_seconds and life.holds_resources:
        failure = Rejection("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
        return msgspec.structs.replace(_over(life, now, TERMINATED_EXIT_CODE), failure=failure)
    if life.stage in (PodStage.CREATING, PodStage.BACKING_OFF):
        return _bounded(_running(life, plan, now), plan)
    if life.stage is PodStage.RUNNING:
        return _bounded(_ended(life, plan, now), plan)
    return msgspec.structs.replace(life, next_at=None)


def view(pod: PodObject, life: PodLife, qos: model.qos.KubernetesQoS) -> PodView:
    """What its status shows."""
    containers = tuple(_container(each, life, pod.uid) for each in pod.spec.containers)
    through = life.stage is not PodStage.CREATING
    init = tuple(_init_container(each, life, pod.uid, through) for each in pod.spec.init_containers or ())
    over = life.stage in (PodStage.OVER, PodStage.GONE)
    return PodView(
        KubernetesQoS(qos),
        moment(life.began),
        containers,
        init,
        made=through,
        over=over,
        failure=life.failure,
    )


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _running(life: PodLife, plan: PodPlan, now: float) -> PodLife:
    count = life.restart_count + (life.end is not None)
    end = None if plan.run_seconds is None else now + plan.run_seconds
    return msgspec.structs.replace(life, stage=PodStage.RUNNING, started=now, next_at=end, restart_count=count)


def _ended(life: PodLife, plan: PodPlan, now: float) -> PodLife:
    if not restarts(plan.restart_policy, plan.exit_code):
        return _over(life, now, plan.exit_code)
    ends = quick_ends(life.quick_ends, now - life.started, _BACKOFF_SECONDS)
    # A container that ends at once would otherwise start again without a pause, for ever.
    again = now + max(delay_seconds(ends, _BACKOFF_SECONDS), plan.pace.start)
    end = _end(life, now, plan.exit_code)
    return msgspec.structs.replace(life, stage=PodStage.BACKING_OFF, end=end, quick_ends=ends, next_at=again)


def _stopped(life: PodLife, now: float) -> PodLife:
    gone = life if not life.holds_resources else _over(life, now, TERMINATED_EXIT_CODE)
    return msgspec.structs.replace(gone, stage=PodStage.GONE, next_at=None)


def _over(life: PodLife, now: float, exit_code: int) -> PodLife:
    end = _end(life, now, exit_code) if life.stage is PodStage.RUNNING else life.end
    return msgspec.structs.replace(life, stage=PodStage.OVER, end=end, next_at=None)


def _end(life: PodLife, now: float, exit_code: int) -> Terminated:
    reason = "Error" if exit_code else "Completed"
    return Terminated(exit_code, reason, moment(now), moment(life.started))


def _bounded(life: PodLife, plan: PodPlan) -> PodLife:
    """The deadline comes first where it does."""
    if plan.deadline_seconds is None or not life.holds_resources:
        return life
    latest = life.began + plan.deadline_seconds
    return msgspec.structs.replace(life, next_at=min(latest, math.inf if life.next_at is None else life.next_at))


def _container(container: PodContainer, life: PodLife, uid: str) -> ContainerView:
    running = life.stage is PodStage.RUNNING
    began = running or life.end is not None
    return ContainerView(
        container.name,
        container.image,
        _state(life, container.name),
        life.end if life.restart_count or life.stage is PodStage.BACKING_OFF else None,
        life.restart_count,
        _id(uid, container.name, life.restart_count) if began else "",
        ready=running,
        started=running,
    )


def _state(life: PodLife, name: str) -> State:
    if life.stage is PodStage.RUNNING:
        return Running(moment(life.started))
    if life.stage is PodStage.BACKING_OFF and life.quick_ends > 1:
        return Waiting("CrashLoopBackOff", f"back-off restarting failed container {name}")
    if life.stage is PodStage.CREATING or life.end is None:
        return Waiting()
    return life.end


def _init_container(container: PodContainer, life: PodLife, uid: str, through: bool) -> ContainerView:
    if not through:
        return ContainerView(container.name, container.image, Waiting("PodInitializing"), sidecar=container.sidecar)
    lives = container.sidecar and life.holds_resources
    since = moment(life.began)
    state: State = Running(since) if lives else Terminated(0, "Completed", since, since)
    id_ = _id(uid, container.name, 0)
    return ContainerView(
        container.name,
        container.image,
        state,
        container_id=id_,
        ready=True,
        started=lives,
        sidecar=container.sidecar,
    )


def _id(uid: str, container: str, run: int) -> str:
    return hashlib.sha256(f"{uid}/{container}/{run}".encode()).hexdigest()


def _number(annotations: Mapping[str, str], key: str, wanted: str) -> float | None:
    text = annotations.get(key)
    if text is None:
        return None
    found = _float(text)
    if found is None or not 0 <= found < 1e9:
        raise _unreadable(key, text, wanted)
    return found


def _share(text: str | None) -> UsageShare:
    if text is None:
        return UsageShare(_USUAL_RATIO, _USUAL_RATIO)
    both = _float(text)
    named: dict[str, float | None]
    named = {"cpu": both, "memory": both} if both is not None else {"cpu": _USUAL_RATIO, "memory": _USUAL_RATIO}
    if both is None:
        for part in text.split(","):
            name, _, number = part.strip().partition("=")
            if name not in named:
                raise _unreadable(USAGE, text, "such as 0.6, or cpu=0.8,memory=0.5")
            named[name] = _float(number)
    cpu, memory = named["cpu"], named["memory"]
    if cpu is None or memory is None or not 0 <= cpu <= _MOST_RATIO or not 0 <= memory <= _MOST_RATIO:
        raise _unreadable(USAGE, text, f"shares of the requests, 0 to {_MOST_RATIO:g}")
    return UsageShare(cpu, memory)


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unreadable(key: str, text: str, wanted: str) -> ConfigurationFault:
    return ConfigurationFault(f"annotation {key}", f"{text[:80]!r} cannot be read", f"write {wanted}")

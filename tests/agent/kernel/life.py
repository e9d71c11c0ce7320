"""An agent without its sources: what a tick decides is given, everything it does to the kernel is real."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from agent.core.limit.plan import plan
from agent.core.limit.pod_limits import pod_limits
from agent.core.limit.release import released
from agent.core.limit.wanted_limit import Limit
from agent.core.observe.observation import Knob, Places, PodPlace, Value
from agent.edge.executor import KnobExecutor
from agent.files.statefile import StateFile
from model.decision import Decision, Term, Unit
from model.pod.pod import Pod
from model.pod.spec import Container
from model.qos import KubernetesQoS, QoSClass
from model.reason import Reason
from model.resources import BATCH_CPU, BATCH_MEMORY, ResourceVector
from model.topology import parse_cpus
from tests.agent.kernel.v1_tree import MOUNT, V1Tree
from tests.pods import make_pod


def batch_pod(uid: str, millis: int) -> Pod:
    amounts = ResourceVector({BATCH_CPU: millis, BATCH_MEMORY: 64 << 20})
    known = {"qos_label": QoSClass.BE, "kubernetes_qos": KubernetesQoS.BEST_EFFORT}
    return make_pod("ns", uid, uid, containers=(Container("c", amounts, amounts),), **known)


class Life:
    """An agent's days: what the root gets, and pods by their uid."""

    def __init__(self, tree: V1Tree, state: Path) -> None:
        self.tree = tree
        self.state = StateFile(state)
        self.executor = KnobExecutor(MOUNT, self.state)
        self.pods = {"podp": 900, "podq": 300}

    def restart(self) -> None:
        self.state.close()
        self.state = StateFile(self.state.path)
        self.executor = KnobExecutor(MOUNT, self.state)

    def turn(self, quota: int, cpus: str) -> None:
        """Root quota, period, weight, idle and CPUs everywhere, limits of pods; every write is accepted."""
        limits = self.limits(quota, cpus)
        self._apply(limits)
        assert {knob: self.executor.read(knob) for knob in limits} == {
            knob: limit.value for knob, limit in limits.items()
        }

    def hold(self, values: Mapping[Knob, Value]) -> None:
        """These and nothing else."""
        self._apply({knob: _limit(knob, value, self.tree.cpus()) for knob, value in values.items()})

    def give_back(self, knobs: Iterable[Knob]) -> None:
        """As where nothing wants them any more."""
        readings = self.executor.readings(tuple(knobs)).readings
        found = (released(knob, reading, 0.0) for knob, reading in readings.items())
        self._apply({limit.knob: limit for limit in found if limit})

    def _apply(self, limits: Mapping[Knob, Limit]) -> None:
        readings = self.executor.readings(tuple(limits))
        outcomes = self.executor.apply(plan(limits, readings.readings), readings.brake_cuts)
        assert [outcome.error for outcome in outcomes if outcome.error or outcome.dropped] == []
        assert self.executor.idle(20)

    def limits(self, quota: int, cpus: str) -> dict[Knob, Limit]:
        tree, knobs = self.tree, self.tree.knobs
        root: Mapping[Knob, Value] = {knobs.quota: quota, knobs.fixed[0].knob: 100_000, knobs.fixed[1].knob: 2}
        groups = ["", *(group for pod in self.pods for group in (pod, f"{pod}/c"))]
        lists = {tree.cpus(group): cpus for group in groups}
        limits = {knob: _limit(knob, value, tree.cpus()) for knob, value in {**root, **lists}.items()}
        places = Places({uid: PodPlace(tree.cgroup(uid), {"c": tree.cgroup(f"{uid}/c")}) for uid in self.pods})
        listed = tuple(batch_pod(uid, millis) for uid, millis in self.pods.items())
        return limits | pod_limits(tree.layout, places, listed, None, quota, {})


def _limit(knob: Knob, value: Value, root: Knob) -> Limit:
    number = len(parse_cpus(value)) if isinstance(value, str) else value
    decision = Decision(knob.subject, knob.file, number, Unit.SHARES, Reason.QUOTA_LOWERED, (Term("x", number),))
    return Limit(knob, value, decision, root if isinstance(value, str) and knob != root else None)

"""What a DaemonSet needs next, decided from it, the nodes and its pods alone.

Source: kubernetes `pkg/controller/daemon/daemon_controller.go`. https://kubernetes.io/docs/tasks/manage-daemon/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from embedded.apiserver.apimachinery.objects import Object, dig
from embedded.apiserver.reconciling.notices import Notice
from embedded.apiserver.reconciling.template_hash import REVISION_HASH
from embedded.apiserver.workloads.daemon_nodes import Daemon, DaemonNode, NodeFitness
from embedded.apiserver.workloads.daemon_set_update import Update, most_surplus, plan_update
from embedded.apiserver.workloads.pods import WorkloadPod, next_available


@dataclass(frozen=True, slots=True)
class DaemonView:
    """A DaemonSet, the hash of its current revision, all nodes, and its pods.

    `resting` are nodes whose failed pod may not be replaced yet.
    """

    daemon_set: Object
    revision: str
    nodes: Sequence[DaemonNode]
    pods: Sequence[WorkloadPod]
    resting: frozenset[str] = frozenset()

    def by_node(self) -> dict[str, list[WorkloadPod]]:
        """The pods of each node they are on or may go to, the one to keep first; ended ones that go are left out."""
        found: dict[str, list[WorkloadPod]] = {}
        for pod in sorted(self.pods, key=lambda pod: (not pod.node, pod.created, pod.name)):
            if pod.target and not (pod.ended and pod.deleting):
                found.setdefault(pod.target, []).append(pod)
        return found

    def standings(self) -> dict[str, NodeFitness]:
        daemon = Daemon(self.daemon_set)
        return {node.name: daemon.standing(node) for node in self.nodes}

    def is_current(self, pod: WorkloadPod) -> bool:
        return pod.labels.get(REVISION_HASH) == self.revision

    @property
    def min_ready_seconds(self) -> int:
        return self.daemon_set["spec"].get("minReadySeconds") or 0


@dataclass(slots=True)
class DaemonSetPlan:
    """Nodes to create a pod for, pods to delete, nodes whose pod has failed, what to tell, when to look again."""

    create: list[str] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
    look_again: float | None = None


def plan_daemon_set(view: DaemonView, now: float) -> DaemonSetPlan:
    """First every node gets what it should have; only when nothing is missing does an update go on."""
    plan, standings, by_node = DaemonSetPlan(), view.standings(), view.by_node()
    for node, standing in standings.items():
        _Place(view, plan, now).settle(node, standing, by_node.get(node, []))
    for node, pods in by_node.items():
        if node not in standings:  # nobody else removes a pod that no node will ever take
            plan.delete += [pod.name for pod in pods if not pod.node]
    if not plan.create and not plan.delete and view.daemon_set["spec"]["updateStrategy"]["type"] == "RollingUpdate":
        update = plan_update(_update_view(view, standings, by_node), now)
        plan.create, plan.delete = list(update.create), list(update.delete)
    plan.look_again = next_available(list(view.pods), view.min_ready_seconds, now)
    return plan


def _update_view(view: DaemonView, standings: dict[str, NodeFitness], by_node: dict[str, list[WorkloadPod]]) -> Update:
    should_run = frozenset(node for node, standing in standings.items() if standing.should_run)
    places = {node: by_node.get(node, []) for node in sorted({*by_node, *should_run})}
    return Update(view.daemon_set, view.is_current, places, should_run)


class _Place:
    """What one node needs, noted in the plan."""

    def __init__(self, view: DaemonView, plan: DaemonSetPlan, now: float) -> None:
        self._view, self._plan, self._now = view, plan, now
        self._namespace = view.daemon_set["metadata"]["namespace"]

    def settle(self, node: str, standing: NodeFitness, pods: list[WorkloadPod]) -> None:
        if standing.should_run and not pods:
            self._plan.create.append(node)
        elif standing.may_stay:
            running = [pod for pod in pods if not pod.deleting and not self._ended(node, pod)]
            if most_surplus(self._view.daemon_set, 1):
                self._settle_surplus(node, standing, running)
            else:
                self._plan.delete += [pod.name for pod in running[1:]]
        else:
            self._plan.delete += [pod.name for pod in pods if not pod.deleting]

    def _ended(self, node: str, pod: WorkloadPod) -> bool:
        """A pod that ended is replaced; one that failed after a pause."""
        if pod.phase == "Succeeded":
            message = f"Found succeeded daemon pod {self._namespace}/{pod.name} on node {node}, will try to delete it"
            self._remove(pod, Notice("SucceededDaemonPod", message))
        elif pod.phase == "Failed" and node not in self._view.resting:
            self._plan.failed.append(node)
            message = f"Found failed daemon pod {self._namespace}/{pod.name} on node {node}, will try to kill it"
            self._remove(pod, Notice("FailedDaemonPod", message, "Warning"))
        return pod.ended

    def _remove(self, pod: WorkloadPod, notice: Notice) -> None:
        self._plan.delete.append(pod.name)
        self._plan.notices.append(notice)

    def _settle_surplus(self, node: str, standing: NodeFitness, running: list[WorkloadPod]) -> None:
        """With a surplus allowed, one old and one new pod may be there until the new one serves."""
        if not running and standing.should_run:
            self._plan.create.append(node)
        if len(running) <= 1:
            return
        new = [pod for pod in running if self._view.is_current(pod)]
        old = [pod for pod in running if not self._view.is_current(pod)]
        self._plan.delete += [pod.name for pod in (*new[1:], *old[1:])]
        if new and old:
            served = new[0].available(self._view.min_ready_seconds, self._now)
            self._plan.delete += [old[0].name] if served or not old[0].ready else []


def daemon_set_status(view: DaemonView, now: float) -> Object:
    """The status: nodes counted, not pods. As Go writes it, the later numbers are left out where they are zero."""
    standings, by_node = view.standings(), view.by_node()
    wanted = [node for node, standing in standings.items() if standing.should_run]
    chosen = [by_node[node][0] for node in wanted if by_node.get(node)]
    available = sum(pod.available(view.min_ready_seconds, now) for pod in chosen)
    status: Object = {
        "currentNumberScheduled": len(chosen),
        "numberMisscheduled": sum(bool(by_node.get(node)) for node in standings.keys() - set(wanted)),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(pod.ready for pod in chosen),
        "observedGeneration": view.daemon_set["metadata"].get("generation", 1),
    }
    further = {
        "updatedNumberScheduled": sum(view.is_current(pod) for pod in chosen),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    status |= {key: number for key, number in further.items() if number}
    if (collisions := dig(view.daemon_set, "status.collisionCount")) is not None:
        status["collisionCount"] = collisions
    return status

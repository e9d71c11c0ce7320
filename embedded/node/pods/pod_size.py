"""The size of one pod that runs: what it wants, what it is allocated, and how what runs gets there.

The pod's own cgroup is widened first and narrowed last, so that it always covers its containers' (which cgroup v1
insists on).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from embedded.fault import KernelFault
from embedded.node.objects.pod import PodContainer, PodObject
from embedded.node.pods import resizing
from embedded.node.pods.admission import Rejection
from embedded.node.pods.runner import ContainerRunner, Record
from embedded.node.ports import Services

_BEGUN = Rejection("", "")
_EVENTS = {"Infeasible": "ResizeInfeasible", "Deferred": "ResizeDeferred"}


class PodSize:
    """`pending` is why the wanted size is not allocated; `in_progress` that, or why, the allocated one is not in force.

    `pod` is the pod as it is allocated, `changed` is called whenever one of the other two changed.
    """

    def __init__(self, pod: PodObject, services: Services, record: Record, changed: Callable[[], None]) -> None:
        self.pending: Rejection | None = None
        self.in_progress: Rejection | None = None
        self._allocation = resizing.reported(pod)
        self._made: PodObject | None = None
        self._runners: Sequence[ContainerRunner] = ()
        self._services = services
        self._record = record
        self._changed = changed
        self._retry: asyncio.TimerHandle | None = None
        self.follow(pod)

    def follow(self, pod: PodObject) -> PodObject:
        """The pod as it is allocated; `pod` is what is wanted now."""
        self.wanted = pod
        self.pod = resizing.allocated(pod, self._allocation)
        return self.pod

    def have(self, runners: Sequence[ContainerRunner]) -> None:
        """The containers there are."""
        self._runners = runners

    def made(self, pod: PodObject) -> None:
        """The pod's cgroup is there, with these amounts."""
        self._made = pod

    @property
    def resized(self) -> bool:
        """Whether something else is wanted than allocated."""
        return self.pod is not self.wanted

    def settled(self) -> None:
        """What is wanted is what is allocated."""
        if self.pending is not None:
            self.pending = None
            self._changed()

    def refuse(self, why: Rejection) -> None:
        """For now, or (Infeasible) until something else is wanted."""
        if why != self.pending:
            self.pending = why
            self._record(_EVENTS[why.reason], f"Pod resize {why.reason}: {why.message}", True)
            self._changed()

    def allocate(self) -> PodObject:
        """Take what is wanted, and begin to bring it in force."""
        self._allocation = resizing.wanted(self.wanted)
        self.pending, self.in_progress = None, _BEGUN
        self._record("ResizeStarted", "Pod resize started", False)
        self.follow(self.wanted)
        self.act()
        self._changed()
        return self.pod

    def act(self) -> None:
        """Bring what runs in line with the allocation as far as may be; to be called whenever a container changed."""
        if self.in_progress is None:
            return
        before = self.in_progress
        try:
            self.in_progress = None if self._in_force() else _BEGUN
        except KernelFault as fault:
            self.in_progress = Rejection("Error", str(fault))
            self._act_later()
        if self.in_progress is None:
            self._record("ResizeCompleted", "Pod resize completed", False)
        if self.in_progress != before:
            self._changed()

    def close(self) -> None:
        """Nothing of the pod runs any more."""
        self.pending = self.in_progress = None
        if self._retry:
            self._retry.cancel()

    def _in_force(self) -> bool:
        """Whether all is, after what could be done now. Raises KernelFault."""
        if self._made is not None:
            self._services.runtime.bound_pod(self.pod, self._made)
        containers = {each.name: each for each in (*self.pod.spec.containers, *(self.pod.spec.init_containers or ()))}
        sized = [self._resize(containers[each.view.name], each) for each in self._runners]
        if not all(sized):
            return False
        if self._made is not None:
            self._services.runtime.bound_pod(self.pod, self.pod)
            self._made = self.pod
        return True

    def _resize(self, container: PodContainer, runner: ContainerRunner) -> bool:
        """Whether the container has its size; one that has to start again gets it then."""
        held = runner.begin_resize(self.pod, container)
        if held is None or not resizing.differ(container, held):
            return True
        if resizing.must_restart(container, held):
            runner.restart()
            return False
        self._services.runtime.resize(self.pod, container, runner.view.container_id or "")
        runner.on_resized(container)
        return True

    def _act_later(self) -> None:
        if self._retry:
            self._retry.cancel()
        self._retry = asyncio.get_running_loop().call_later(self._services.volume_seconds, self.act)

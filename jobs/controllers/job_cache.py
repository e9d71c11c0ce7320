"""Jobs and their pods as they were seen last, and which objects were made for each by this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jobs.core.peers import pod_name
from kube.dialects.jobs import reading
from kube.dialects.jobs.job_pods import JobPodObject, job_pod, owner
from kube.dialects.jobs.reading import AnyJob
from kube.dialects.jobs.volcano_command import target_uid, volcano_command
from kube.informer import Change, ChangeKind
from kube.objects import Metadata, VolcanoCommand
from model.job.actions import EnsureObject, MadeKind
from model.job.job import JobCommand
from model.job.status import JobPod


class JobCache:
    """`add` hears the key of each job that is to be looked at."""

    def __init__(self, add: Callable[[str], None]) -> None:
        self._add = add
        self._sources: dict[str, AnyJob] = {}
        self._keys: dict[str, str] = {}
        self._pods: dict[tuple[str, str], dict[str, JobPod]] = {}
        self._owners: dict[tuple[str, str], str] = {}
        self._commands: dict[tuple[str, str], dict[str, JobCommand]] = {}
        self._targets: dict[str, tuple[str, str]] = {}
        self._made: dict[str, dict[tuple[MadeKind, str], EnsureObject]] = {}

    def saw_job(self, change: Change[Any]) -> None:
        """Every change of a job."""
        source: AnyJob = change.object
        metadata = source.metadata
        key = f"{reading.dialect_of(source)} {metadata.namespace}/{metadata.name}"
        if change.kind is ChangeKind.DELETED:
            self._sources.pop(key, None)
            self._keys.pop(metadata.uid, None)
            self._made.pop(metadata.uid, None)
        else:
            self._sources[key] = source
            self._keys[metadata.uid] = key
        self._add(key)

    def saw_pod(self, change: Change[JobPodObject]) -> None:
        """Every change of a pod of a job; one that only bears the label of a job is none of its, nor is one of another
        namespace, where anybody may name any job as its owner. One that names another job by now is the first one's no
        more.
        """
        pod = change.object
        uid, namespace, name = owner(pod), pod.metadata.namespace, pod.metadata.name
        found = job_pod(pod) if uid and change.kind is not ChangeKind.DELETED else None
        before_uid = self._owners.pop((namespace, name), "")
        known = self._pods.get((namespace, before_uid), {})
        before = known.pop(name, None)
        if before is not None and not known:
            del self._pods[namespace, before_uid]
        if found is not None:
            self._owners[namespace, name] = uid
            self._pods.setdefault((namespace, uid), {})[name] = found
        if before_uid not in ("", uid):
            self._add_own(namespace, before_uid)
        # A word that says nothing of what is known of it, such as another label, is none to its job.
        if before_uid not in ("", uid) or found != before or change.kind is ChangeKind.DELETED:
            self._add_own(namespace, uid)

    def saw_command(self, change: Change[VolcanoCommand]) -> None:
        """Every change of a command; one about a job of another namespace is none of its. One that is about another job
        by now is the first one's no more.
        """
        metadata, uid = change.object.metadata, target_uid(change.object)
        place, before = (metadata.namespace, uid), self._targets.pop(metadata.uid, None)
        if before is not None:
            known = self._commands[before]
            del known[metadata.uid]
            if not known:
                del self._commands[before]
            if before != place:
                self._add_own(*before)
        if uid and change.kind is not ChangeKind.DELETED:
            self._targets[metadata.uid] = place
            self._commands.setdefault(place, {})[metadata.uid] = volcano_command(change.object)
        self._add_own(*place)

    def commands(self, source: AnyJob) -> tuple[JobCommand, ...]:
        """Those about this job."""
        metadata = source.metadata
        return tuple(self._commands.get((metadata.namespace, metadata.uid), {}).values())

    def look_at_all(self) -> None:
        """Whatever jobs depend on may have changed."""
        for key in self._sources:
            self._add(key)

    def source(self, key: str) -> AnyJob | None:
        """The job of a key; None for one that is gone."""
        return self._sources.get(key)

    def pods(self, uid: str) -> Iterable[JobPod]:
        """Those that the job of that uid controls, under the names that it gives them; none without the job."""
        source = self._source_of(uid)
        if source is None:
            return ()
        namespace, job = source.metadata.namespace, source.metadata.name
        known = self._pods.get((namespace, uid), {})
        return tuple(pod for name, pod in known.items() if name == pod_name(job, pod.member))

    def number(self, uid: str) -> int:
        """How many pods and commands a look at the job of that uid goes through."""
        source = self._source_of(uid)
        place = (source.metadata.namespace if source is not None else "", uid)
        return len(self._pods.get(place, ())) + len(self._commands.get(place, ()))

    def saw_gone(self, kind: MadeKind, metadata: Metadata) -> None:
        """An object of that kind was deleted: the job for which it was made here gets it again."""
        for uid in (each.uid for each in metadata.owner_references or ()):
            # Whoever may write objects of another namespace may name any job as their owner.
            source = self._source_of(uid)
            own = source is not None and source.metadata.namespace == metadata.namespace
            if own and self._made.get(uid, {}).pop((kind, metadata.name), None) is not None:
                self._add(self._keys[uid])

    def _source_of(self, uid: str) -> AnyJob | None:
        return self._sources.get(self._keys.get(uid, ""))

    def _add_own(self, namespace: str, uid: str) -> None:
        """The job of that uid is to be looked at, if it is of that namespace."""
        source = self._source_of(uid)
        if source is not None and source.metadata.namespace == namespace:
            self._add(self._keys[uid])

    def made(self, uid: str, action: EnsureObject) -> None:
        """The object is there as `action` has it, or will be in a moment."""
        self._made.setdefault(uid, {})[action.kind, action.name] = action

    def not_made(self, uid: str, action: EnsureObject) -> None:
        """It could not be made after all."""
        self._made.get(uid, {}).pop((action.kind, action.name), None)

    def forget_made(self, uid: str) -> None:
        """Of a job whose objects may not be there any more."""
        self._made.pop(uid, None)

    def is_made(self, uid: str, action: EnsureObject) -> bool:
        """Whether this process made it so, and has not heard that it was deleted."""
        return self._made.get(uid, {}).get((action.kind, action.name)) == action

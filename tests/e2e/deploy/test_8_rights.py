"""RBAC held against what happened: nothing that a program asked for was denied, nothing that it may was never used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import urllib3

from embedded.apiserver.authorization.granted import Permission, Usage, usage
from tests.e2e.deploy import work
from tests.e2e.deploy.site import NAMESPACE, Site
from tests.e2e.deploy.test_6_callers import LINKED, PORTS, VIEWER, Callers, callers

__all__ = ["callers"]
KINDS = "clusterroles,clusterrolebindings,roles,rolebindings"
NOT_REACHED = {
    ("scheduler", "get pods"): "whether a bind that timed out was done all the same; and, before Kubernetes 1.30, "
    "the node of an agent's token",
    ("admission", "get namespaces"): "a namespace that is asked about before its watch has shown it",
    ("agent", "patch events"): "the same thing happening to the same pod again",
    **{
        (
            "scheduler",
            right,
        ): "queues, and gangs of Volcano: tests/e2e/scheduling/test_queues.py and the guide make some"
        for right in (
            "create elasticquotas.scheduling.sigs.k8s.io",
            "patch elasticquotas.scheduling.sigs.k8s.io",
            "patch podgroups.scheduling.volcano.sh",
            "patch podgroups/status.scheduling.volcano.sh",
            "patch queues/status.scheduling.volcano.sh",
            "patch queues/status.sublet.dev",
            *(
                f"get customresourcedefinitions.apiextensions.k8s.io {definition}"
                for definition in (
                    "elasticquotaprofiles.quota.koordinator.sh",
                    "elasticquotas.scheduling.sigs.k8s.io",
                    "podgroups.scheduling.volcano.sh",
                    "queues.scheduling.volcano.sh",
                )
            ),
        )
    },
    **{
        ("scheduler", right): "TrainingJobs and Volcano's Jobs: tests/e2e/jobs and the guide make some"
        for right in (
            "create configmaps",
            "create networkpolicies.networking.k8s.io",
            "create pods",
            "create podgroups.scheduling.sigs.k8s.io",
            "create podgroups.scheduling.volcano.sh",
            "create secrets",
            "create services",
            "delete commands.bus.volcano.sh",
            "delete jobs.batch.volcano.sh",
            "delete trainingjobs.sublet.dev",
            "get configmaps",
            "get customresourcedefinitions.apiextensions.k8s.io jobs.batch.volcano.sh",
            "get networkpolicies.networking.k8s.io",
            "get podgroups.scheduling.sigs.k8s.io",
            "get podgroups.scheduling.volcano.sh",
            "get services",
            "patch configmaps",
            "patch jobs/status.batch.volcano.sh",
            "patch trainingjobs/status.sublet.dev",
        )
    },
    **{
        (
            "scheduler",
            right,
        ): "Kueue's queues and jobs that wait whole: tests/scheduler/queues and docs/kueue.md make some"
        for right in (
            "create workloads.kueue.x-k8s.io",
            "get workloads.kueue.x-k8s.io",
            "patch workloads.kueue.x-k8s.io",
            "delete workloads.kueue.x-k8s.io",
            "patch jobs.batch",
            "patch jobsets.jobset.x-k8s.io",
            "patch trainingjobs.sublet.dev",
            *(f"patch {kind}/status.kueue.x-k8s.io" for kind in ("clusterqueues", "localqueues", "workloads")),
            *(
                f"{before}{kind}.kueue.x-k8s.io"
                for before in ("list ", "watch ", "get customresourcedefinitions.apiextensions.k8s.io ")
                for kind in (
                    "admissionchecks",
                    "clusterqueues",
                    "cohorts",
                    "localqueues",
                    "resourceflavors",
                    "topologies",
                    "workloadpriorityclasses",
                    "workloads",
                )
            ),
        )
    },
    **{
        ("scheduler", f"{verb} {kind}"): "gangs of controllers whose definitions this cluster lacks"
        for verb in ("list", "watch")
        for kind in (
            "compositepodgroups.scheduling.k8s.io",
            "jobsets.jobset.x-k8s.io",
            "leaderworkersets.leaderworkerset.x-k8s.io",
            "pytorchjobs.kubeflow.org",
        )
    },
    **{
        ("admission", f"get {queues}"): "a queue whose parent was made a moment ago, before its watch has shown it"
        for queues in (
            "elasticquotas.scheduling.sigs.k8s.io",
            "queues.scheduling.volcano.sh",
            "queues.sublet.dev",
        )
    },
}
"""What this story does not bring about, and when it is needed."""


@pytest.fixture(scope="module")
def worked(lending: Site, callers: Callers) -> Iterator[Site]:
    """After work that needs every right."""
    kubectl = lending.cluster.kubectl
    kubectl("create", "namespace", work.PLACE)
    work.waiting(lending)
    work.gangs(lending)
    work.preemption(lending)
    work.evictions(lending)
    work.silence(lending)
    for program in PORTS:
        assert callers.metrics(program, VIEWER)[0] == 200
    work.damage(lending)
    yield lending
    kubectl("delete", "namespace", work.PLACE)


def used(site: Site, program: str) -> Usage:
    """By the program itself: what a test did with its token is not its doing."""
    user = f"system:serviceaccount:{NAMESPACE}:sublet-{program}"
    events = [event for event in site.events_of(program) if event["userAgent"].startswith("sublet-")]
    assert len(events) > 10
    return usage(user, site.items(KINDS, "-A"), events)


def words(permissions: tuple[Permission, ...]) -> set[str]:
    return {str(permission) for permission in permissions}


@pytest.mark.parametrize("program", PORTS)
def test_nothing_is_denied(worked: Site, program: str) -> None:
    assert words(used(worked, program).denied) == set()


@pytest.mark.parametrize("program", PORTS)
def test_nothing_is_granted_that_is_not_used(worked: Site, program: str) -> None:
    """But for what the table argues for."""
    argued = {right for of, right in NOT_REACHED if of == program}
    unused = words(used(worked, program).unused) - argued
    if not worked.upstream_gangs:
        unused = {right for right in unused if not right.endswith(".scheduling.k8s.io")}
    assert unused == set()


def test_what_was_damaged_works_again(worked: Site, callers: Callers) -> None:
    """With an authority that nobody knew before: webhooks answer, agents are linked, /metrics shows its certificate."""
    kubectl = worked.cluster.kubectl
    kubectl("label", "namespace", work.PLACE, "koordinator.sh/enable-colocation=true")
    asked = f"kubectl -n {work.PLACE} run asked --image=busybox --dry-run=server"
    worked.eventually(lambda: worked.shell(asked).returncode == 0, "webhooks answer")
    callers.ca.write_text(worked.get("configmap", "sublet-ca")["data"]["ca.crt"])

    def linked() -> bool:
        try:
            return LINKED in callers.metrics("agent", VIEWER)[1]
        except urllib3.exceptions.HTTPError:
            return False  # its folder of certificates is renewed by and by

    worked.eventually(linked, "agents are linked, and trusted by the new authority", 200)

"""What a cluster's facts mean for an installation."""

from __future__ import annotations

import msgspec
import pytest

from model.finding import Finding, Severity, refused
from view.cluster_check import DEFINITIONS, CheckedCluster, findings

GOOD = CheckedCluster(
    version=(1, 32),
    version_text="v1.32.0",
    policies=True,
    workloads=("kube-system/coredns",),
    definitions=frozenset(DEFINITIONS),
    nodes=((("amd64", "6.1.0", "containerd://1.7"), 3),),
)


def row(check: str, **changes: object) -> Finding:
    found = {finding.check: finding for finding in findings(msgspec.structs.replace(GOOD, **changes))}
    return found[check]


def test_a_good_cluster_has_nothing_to_mend():
    rows = findings(GOOD)
    assert {each.verdict for each in rows} == {Severity.OK} and not refused(rows)


CASES: dict[str, tuple[str, dict[str, object], Severity, str]] = {
    "too old": ("Kubernetes", {"version": (1, 22), "version_text": "v1.22.4"}, Severity.REFUSED, "1.24+"),
    "no admission policies": ("admission policies", {"policies": False}, Severity.LIMITED, "other nodes"),
    "policies before they were whole": ("admission policies", {"version": (1, 28)}, Severity.LIMITED, "1.30+"),
    "another architecture": ("nodes", {"nodes": ((("s390x", "6.1", "crio"), 1),)}, Severity.LIMITED, "no image"),
    "no node": ("nodes", {"nodes": ()}, Severity.LIMITED, "nothing to lend"),
    "too few rights": (
        "your permissions",
        {"denied": ("create namespaces",)},
        Severity.REFUSED,
        "not create namespaces",
    ),
    "no definitions": (
        "Koordinator's definitions",
        {"definitions": frozenset()},
        Severity.LIMITED,
        "kubectl create -k",
    ),
    "Koordinator runs": (
        "other colocation",
        {"workloads": ("koordinator-system/koordlet", "koordinator-system/koord-manager")},
        Severity.REFUSED,
        "Koordinator's agent (koordinator-system/koordlet), Koordinator's manager",
    ),
    "Volcano's controllers run": (
        "other queueing",
        {"workloads": ("volcano-system/volcano-controllers",)},
        Severity.LIMITED,
        "its Jobs left to it",
    ),
    "Volcano's scheduler runs": (
        "other queueing",
        {"workloads": ("volcano-system/volcano-scheduler",)},
        Severity.LIMITED,
        "leave volcano out of",
    ),
    "Kueue runs": (
        "other queueing",
        {"workloads": ("kueue-system/kueue-controller-manager",)},
        Severity.LIMITED,
        "needs room in both",
    ),
    "somebody lends": (
        "other colocation",
        {"foreign": ("a", "b", "c", "d", "e")},
        Severity.REFUSED,
        "a, b, c and 2 more",
    ),
}


@pytest.mark.parametrize(("check", "changes", "verdict", "told"), CASES.values(), ids=CASES)
def test_what_is_wrong_says_what_follows(check, changes, verdict, told):
    found = row(check, **changes)
    assert found.verdict is verdict
    assert told in " ".join((found.found, found.effect, found.fix))

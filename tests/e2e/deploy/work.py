"""Work that makes the programs use each right they have: gangs, preemption, evictions, silence, damage."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.deploy.site import NAMESPACE, Site
from tests.e2e.scheduling.manifests import HOSTNAME, Manifest, gang, listed, members, pod

PLACE = "rights-demo"
_LARGE, _NEARLY_ALL = "5", "7900m"
"""CPUs of a node that says it has eight: two of the former do not share one, beside Sublet the latter finds no room."""
_CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"rights-{name}"},
        "value": value,
    }
    for name, value in (("low", 5100), ("high", 5900))
]
_UPSTREAM_GANG = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "upstream"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
}
DAMAGED = ("sublet-agent-tls", "sublet-scheduler-tls", "sublet-admission-tls", "sublet-ca")
# Any use of memory is too much, so that batch pods go which hold a meaningful part of it.
_HELD_BYTES = 512 << 20
_HOLD = ["python3", "-c", f"import time; held = b'x' * {_HELD_BYTES}; time.sleep(3600)"]
_PRESSURE = {"clusterStrategy": {"enable": True, "memoryEvictThresholdPercent": 1, "memoryEvictLowerPercent": 0}}


def apply(site: Site, *manifests: Manifest | list[Manifest]) -> None:
    """Into a namespace of our own."""
    done = site.cluster.apply(listed(*(_placed(each) for each in manifests)), check=False)
    assert done.returncode == 0, done.stderr


def _placed(manifest: Manifest | list[Manifest]) -> list[Manifest]:
    found = manifest if isinstance(manifest, list) else [manifest]
    for each in found:
        for container in each["spec"].get("containers") or ():
            container |= {"image": "busybox", "command": container.get("command", ["sleep", "3600"])}
    return [{**each, "metadata": {**each["metadata"], "namespace": PLACE}} for each in found]


def runs(site: Site, *names: str) -> None:
    pods = " ".join(f"pod/{name}" for name in names)
    done = site.shell(f"kubectl -n {PLACE} wait {pods} --for=condition=PodScheduled --timeout=60s")
    assert done.returncode == 0, done.stderr + site.cluster.kubectl("-n", PLACE, "get", "events")


def gangs(site: Site) -> None:
    """One of Koordinator's kind and one of Kubernetes' own; their status is written."""
    apply(site, gang("old", 2), members("old", 2, cpu="100m"))
    runs(site, "old-0", "old-1")
    if site.upstream_gangs:
        grouped = {"schedulingGroup": {"podGroupName": "upstream"}}
        apply(site, _UPSTREAM_GANG, [pod(f"upstream-{index}", "100m", **grouped) for index in range(2)])
        runs(site, "upstream-0", "upstream-1")


def preemption(site: Site) -> None:
    """A pod that waits for a node is given the place of a lesser one."""
    site.cluster.apply(listed([dict(each) for each in _CLASSES]))
    here = {"nodeSelector": {HOSTNAME: site.node_names[0]}}
    apply(site, pod("lesser", _LARGE, priorityClassName="rights-low", **here))
    runs(site, "lesser")
    apply(site, pod("greater", _LARGE, priorityClassName="rights-high", **here))
    runs(site, "greater")


def waiting(site: Site) -> None:
    """A pod that waits for one reason, for another, and for the first again: its first event is counted up."""
    cordoned, other = site.node_names
    apply(site, pod("filler", "100m", nodeSelector={HOSTNAME: other}))
    runs(site, "filler")
    site.cluster.kubectl("cordon", cordoned)
    apply(site, pod("waits", _NEARLY_ALL))
    site.eventually(lambda: _told(site, "1 Insufficient cpu"), "one node is too full, the other takes no pods")
    site.cluster.kubectl("uncordon", cordoned)
    site.eventually(lambda: _told(site, "2 Insufficient cpu"), "both nodes are too full")
    site.cluster.kubectl("cordon", cordoned)
    site.cluster.kubectl("-n", PLACE, "delete", "pod", "filler")
    site.eventually(lambda: _told(site, "1 Insufficient cpu", 2), "the first event is counted up")
    site.cluster.kubectl("uncordon", cordoned)
    site.cluster.kubectl("-n", PLACE, "delete", "pod", "waits")


def _told(site: Site, words: str, times: int = 1) -> bool:
    """Whether the waiting pod has an event with these words that happened so often."""
    chosen = ("--field-selector", "involvedObject.name=waits,reason=FailedScheduling")
    events = site.items("events", *chosen, namespace=PLACE)
    return any(words in event["message"] and event.get("count", 1) >= times for event in events)


def evictions(site: Site) -> None:
    """Batch pods go when a node uses too much memory; the leader hands the rule to each node."""
    batch = {"kubernetes.io/batch-cpu": "100", "kubernetes.io/batch-memory": str(_HELD_BYTES + (64 << 20))}
    victim = pod("victim", priorityClassName="koord-batch", labels={"koordinator.sh/qosClass": "BE"})
    container: Any = victim["spec"]["containers"][0]
    container |= {"resources": {"requests": batch, "limits": batch}, "command": _HOLD}
    apply(site, victim)
    runs(site, "victim")
    configure(site, **{"resource-threshold-config": json.dumps(_PRESSURE)})
    chosen = ("--field-selector", "involvedObject.name=victim,reason=BEMemoryEvict")
    site.eventually(lambda: site.items("events", *chosen, namespace=PLACE), "the victim is evicted", 120)
    configure(site, **{"resource-threshold-config": None})


def silence(site: Site) -> None:
    """An agent that is gone for long: the leader takes back what it offered."""
    *_, silent = site.node_names
    elsewhere = {"spec": {"template": {"spec": {"nodeSelector": {HOSTNAME: site.node_names[0]}}}}}
    configure(site, **{"colocation-config": json.dumps({**site.room, "degradeTimeMinutes": 1})})
    _patch(site, "daemonset/sublet-agent", elsewhere)
    site.eventually(lambda: not site.lent(silent), "a silent agent's offer is withdrawn", 240)
    _patch(site, "daemonset/sublet-agent", {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    site.make_room()
    site.rolled_out("daemonset/sublet-agent")
    site.eventually(lambda: site.lent(silent), "it lends again", 120)


def damage(site: Site) -> None:
    """Somebody overwrites every Secret and the bundle: all of it is made again."""
    _patch(site, "configmap/sublet-ca", {"data": {"ca.crt": "nonsense"}})
    for name in DAMAGED:
        before = site.get("secret", name)
        _patch(site, f"secret/{name}", {"data": dict.fromkeys(before["data"], "bm9uc2Vuc2U=")})

    def whole() -> bool:
        secrets = [site.get("secret", name)["data"] for name in DAMAGED]
        told = site.get("configmap", "sublet-ca")["data"]["ca.crt"]
        return "BEGIN CERTIFICATE" in told and not any("bm9uc2Vuc2U=" in data.values() for data in secrets)

    site.eventually(whole, "all certificates are made again", 120)


def configure(site: Site, **data: str | None) -> None:
    """Keys of Koordinator's configuration; None takes one out."""
    body = json.dumps({"data": data})
    site.cluster.kubectl(
        "-n", "koordinator-system", "patch", "configmap", "slo-controller-config", "--type=merge", "-p", body
    )


def _patch(site: Site, what: str, change: dict[str, Any]) -> None:
    site.cluster.kubectl("-n", NAMESPACE, "patch", what, "--type=merge", "-p", json.dumps(change))

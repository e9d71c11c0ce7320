"""The fleet's switch, by the document's own commands: a canary, everybody, pause; an upgrade switches nothing."""

from __future__ import annotations

from typing import Any

from tests.e2e.deploy.files import control_files
from tests.e2e.deploy.site import BATCH, NAMESPACE, Site


def lenders(site: Site) -> set[str]:
    return {name for name in site.node_names if site.lent(name)}


def ready(site: Site, node: str) -> dict[str, Any]:
    """The condition that the agent writes; empty where it never did."""
    conditions = site.get("node", node)["status"]["conditions"]
    return next((each for each in conditions if each["type"] == "ColocationReady"), {})


def test_a_canary_lends_alone(site: Site) -> None:
    """The nodes with the label lend within a window or two; the others are as untouched as before."""
    site.make_room()
    first, other = site.node_names
    site.cluster.kubectl("label", "node", first, "pool=batch")
    site.documented('"canary":"pool=batch"')
    site.eventually(lambda: lenders(site) == {first}, "the canary lends")
    assert ready(site, first)["status"] == "True" and not ready(site, other)
    assert site.nodes()[other]["status"]["allocatable"] == site.before[0][other]["status"]["allocatable"]
    changed = {path for path, text in control_files(site.cluster.endpoints).items() if text != site.before[2][path]}
    others = next(node for node in site.cluster.endpoints["nodes"] if node["name"] == other)
    assert not [path for path in changed if others["kubepods"] in path and path.startswith(others["cgroup_root"])]


def test_one_value_lends_everywhere(site: Site) -> None:
    """No pod is restarted for it."""
    before = {pod["metadata"]["uid"] for pod in site.pods_of("agent")}
    site.documented('"mode":"lend","canary":""')
    site.eventually(lambda: lenders(site) == set(site.node_names), "all nodes lend")
    assert {pod["metadata"]["uid"] for pod in site.pods_of("agent")} == before
    for node in site.nodes().values():
        allocatable, capacity = node["status"]["allocatable"], node["status"]["capacity"]
        assert {name: allocatable[name] for name in BATCH} == {name: capacity[name] for name in BATCH}


def test_live_usage_is_reported(site: Site) -> None:
    """NodeMetric has numbers once agents lend."""

    def reported() -> bool:
        items = site.items("nodemetrics.slo.koordinator.sh")
        return len(items) == len(site.node_names) and all(
            item.get("status", {}).get("nodeMetric", {}).get("nodeUsage") for item in items
        )

    site.eventually(reported, "each NodeMetric has its usage", 90)


def test_an_upgrade_switches_nothing(site: Site) -> None:
    """`kubectl apply -k deploy/` again, with lending switched on by hand."""
    site.documented("kubectl apply -k deploy/")
    assert site.fleet() == {"mode": "lend", "canary": ""}
    assert lenders(site) == set(site.node_names)


def test_pause_takes_everything_back(site: Site) -> None:
    """The offer is gone, the reason is told, and what held best-effort work goes on holding it."""
    site.documented('"paused":"true"')
    site.eventually(lambda: not lenders(site), "nothing is lent while paused")
    assert {ready(site, name)["reason"] for name in site.node_names} == {"FleetPaused"}
    resume = '{"data":{"paused":"false"}}'
    site.cluster.kubectl("-n", NAMESPACE, "patch", "configmap", "sublet-fleet", "--type", "merge", "-p", resume)
    site.eventually(lambda: lenders(site) == set(site.node_names), "all nodes lend again")

"""Certificates go and come; nobody restarts anything."""

from __future__ import annotations

import ssl

from tests.e2e.deploy.site import NAMESPACE, Site
from tests.e2e.deploy.test_6_callers import LINKED, VIEWER, Callers, callers

__all__ = ["callers"]


def leaders(site: Site) -> set[str]:
    """Names of the schedulers that say that they lead."""
    return {pod["metadata"]["name"] for pod in site.items("pods", "-l", "sublet.dev/leader=true")}


def served(site: Site) -> str:
    """The certificate that the link shows."""
    host, _, port = f"{site.get('service', 'sublet-scheduler')['spec']['clusterIP']}:10318".partition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=20)


def test_a_deleted_certificate_is_made_again_and_served(callers: Callers) -> None:
    """The Secret is back in a moment, and the running scheduler serves with it."""
    site, before = callers.site, served(callers.site)
    restarts = {pod["metadata"]["uid"] for pod in site.pods_of("scheduler")}
    site.cluster.kubectl("-n", NAMESPACE, "delete", "secret", "sublet-scheduler-tls")
    site.eventually(
        lambda: site.shell(f"kubectl -n {NAMESPACE} get secret sublet-scheduler-tls").returncode == 0, "made again"
    )
    site.eventually(lambda: served(site) != before, "the new certificate is served", 200)
    assert {pod["metadata"]["uid"] for pod in site.pods_of("scheduler")} == restarts


def test_agents_find_the_next_leader(callers: Callers) -> None:
    """The leader is deleted: the standby leads, and agents link to it with what they trust."""
    site, before = callers.site, leaders(callers.site)
    site.cluster.kubectl("-n", NAMESPACE, "delete", "pod", *before)
    site.eventually(lambda: leaders(site) and not leaders(site) & before, "another leader", 90)
    site.eventually(lambda: LINKED in callers.metrics("agent", VIEWER)[1], "agents are linked", 90)
    site.rolled_out("deployment/sublet-scheduler")

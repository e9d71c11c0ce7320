"""Plugin pytorch: MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK, the master first and then the workers.

Source: volcano pkg/controllers/job/plugins/distributed-framework/pytorch.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.core.peers import Peers
from model.job.job import Member

PORT = 23456


def environment(peers: Peers, member: Member, flags: Mapping[str, str]) -> dict[str, str]:
    """Nothing for a job without the master's task; no rank for pods of other tasks."""
    master, worker = flags.get("master", "master"), flags.get("worker", "worker")
    masters, workers = peers.of(master), peers.of(worker)
    if not masters:
        return {}
    told = {
        "MASTER_ADDR": peers.host(masters[0]),
        "MASTER_PORT": port(flags),
        "WORLD_SIZE": str(len(masters) + len(workers)),
    }
    if member.task not in (master, worker):
        return told
    # Of one task the order is that of all members.
    first = masters[0] if member.task == master else workers[0]
    before = 0 if member.task == master else len(masters)
    return {**told, "RANK": str(before + peers.rank(member) - peers.rank(first))}


def port(flags: Mapping[str, str]) -> str:
    """A port that is none counts as unset, as in Volcano."""
    text = flags.get("port", "")
    return text if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65_536 else str(PORT)

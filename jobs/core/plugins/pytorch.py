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
    ranked = (*masters, *workers)
    told = {
        "MASTER_ADDR": peers.host(masters[0]),
        "MASTER_PORT": port(flags),
        "WORLD_SIZE": str(len(ranked)),
    }
    return {**told, "RANK": str(ranked.index(member))} if member in ranked else told


def port(flags: Mapping[str, str]) -> str:
    """A port that is none counts as unset, as in Volcano."""
    text = flags.get("port", "")
    return text if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) < 65_536 else str(PORT)

"""A master and two workers, as their processes see each other."""

from __future__ import annotations

from jobs.core.peers import Peers
from model.job.job import Member

MASTER, FIRST, SECOND = Member("master", 0), Member("worker", 0), Member("worker", 1)
PEERS = Peers("train", (MASTER, FIRST, SECOND), slots=8)
HOSTS = ("train-master-0.train", "train-worker-0.train", "train-worker-1.train")

"""Flavours: kinds of nodes that quota is counted by, by which names work gets into queues, and what it gets there."""

"""Queueing: waiting workloads, their order, what they wait for, and the room reserved for the head of a queue."""

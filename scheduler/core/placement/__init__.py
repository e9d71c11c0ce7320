"""Nodes for workloads: the snapshot with what is placed on top of it, and whole gangs onto it."""

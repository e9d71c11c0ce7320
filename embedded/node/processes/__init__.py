"""Containers as processes: cgroups, namespaces, mounts, users, streams."""

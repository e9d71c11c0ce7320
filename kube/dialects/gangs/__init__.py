"""Gangs: what pods and PodGroups say of theirs, and where members go together."""

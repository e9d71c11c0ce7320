"""Snapshot: the cluster at one moment: nodes as rows of arrays, pods as classes, and who is where."""

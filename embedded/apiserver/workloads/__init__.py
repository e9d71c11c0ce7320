"""The controllers of Deployments, ReplicaSets and DaemonSets."""

"""Suspended jobs, which wait whole and without a pod, and the Workload objects that say how they stand."""

"""Pods and PodGroups assembled into workloads, or why they are held; what becomes of gangs bound in part."""

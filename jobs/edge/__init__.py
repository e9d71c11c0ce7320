"""Kubernetes: what jobs write there."""

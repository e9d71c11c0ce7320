"""Kubernetes objects as a kubelet reads them, and what follows from a pod alone: requests, environment, sources."""

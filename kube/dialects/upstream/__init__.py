"""Kubernetes' own objects into the model."""

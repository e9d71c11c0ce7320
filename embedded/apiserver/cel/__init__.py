"""Expressions in CEL with Kubernetes' functions, and what they may cost."""

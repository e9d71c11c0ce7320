"""Observation of a node: kernel files read as numbers, use over windows, predicted peaks, its NodeMetric."""

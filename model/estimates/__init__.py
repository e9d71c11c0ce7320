"""Estimates of what has not happened yet."""

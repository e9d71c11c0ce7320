"""Addresses of nodes and pods, names of Services, who listens where."""

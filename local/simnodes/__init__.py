"""Simulated nodes: Nodes that exist in the API only, with pods whose life and use follow a model or a trace."""

"""A request as values: who asks, for what, with which options."""

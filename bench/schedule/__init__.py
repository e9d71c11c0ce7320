"""How fast and how well the scheduler decides."""

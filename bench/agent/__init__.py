"""What the agent costs: its imports, one observation beside other readers, the whole process."""

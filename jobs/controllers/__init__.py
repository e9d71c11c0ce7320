"""Controllers of jobs: what changes, and the loop that acts on it."""

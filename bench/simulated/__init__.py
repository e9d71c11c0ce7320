"""The scheduler's own cycle in simulated time: jobs come, run and go, and nothing waits for a clock."""

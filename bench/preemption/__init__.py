"""What a preemption costs a job that trains."""

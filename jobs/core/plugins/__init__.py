"""Volcano's plugins: what each adds to the pods of a job, and which objects it needs."""

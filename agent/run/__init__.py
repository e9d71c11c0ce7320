"""The running agent: its wiring, its loop and the tasks beside it."""

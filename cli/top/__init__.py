"""`sublet top`: the command, the watches behind it, and its table as text."""

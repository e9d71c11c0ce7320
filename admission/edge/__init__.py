"""The admission program and the world: one technology a file."""

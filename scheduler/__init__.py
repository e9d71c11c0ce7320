"""The central scheduler: whole gangs onto nodes, and an explanation for each that waits."""

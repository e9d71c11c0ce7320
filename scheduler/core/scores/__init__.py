"""Scores: among the nodes a pod may go to, which one is best. Image locality is off: image lists are not read."""

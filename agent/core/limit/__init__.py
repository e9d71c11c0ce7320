"""Limits of best effort: one for each control file, whose value it holds, and the order in which they are written."""

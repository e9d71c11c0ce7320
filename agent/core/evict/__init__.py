"""Evictions: which best-effort pods must go, when, and what they are told."""

"""Preemption of whole jobs: who must go so that every needed member fits, and how that is carried out."""

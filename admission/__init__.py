"""Admission: what Sublet changes and checks when objects are written."""

"""A job, its status, and what is to be done for it."""

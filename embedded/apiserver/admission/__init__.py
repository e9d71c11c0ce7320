"""Admission of writes by others than this server: webhooks, policies in CEL, and who may give away rights."""

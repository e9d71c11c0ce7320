"""Addresses of Services: TCP that comes to one is passed on to one of its endpoints."""

"""Whole CPUs of nodes, given to pods that ask for some of their own."""

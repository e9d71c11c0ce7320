"""The kernel a node works with, real or simulated, and its view of a part of the machine."""

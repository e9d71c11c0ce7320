"""Environment variables that the processes of each framework read."""

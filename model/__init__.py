"""Shared vocabulary of Sublet: frozen values without I/O, clocks or third-party imports but msgspec."""

"""Benchmarks: what one observation and the whole agent cost, on real cgroups. Not part of the installed product."""

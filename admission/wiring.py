"""The admission program put together: the only place that constructs its edges."""

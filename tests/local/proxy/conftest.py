"""A real API server for the proxy."""

from embedded.tests.apiserver.conftest import start_live

__all__ = ["start_live"]

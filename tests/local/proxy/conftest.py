"""A real API server for the proxy."""

from tests.local.apiserver.conftest import start_live

__all__ = ["start_live"]

"""What containers with an image run."""

from embedded.tests.node.conftest import image_store

__all__ = ["image_store"]

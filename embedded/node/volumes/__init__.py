"""A pod's volumes as directories, and where a container has them."""

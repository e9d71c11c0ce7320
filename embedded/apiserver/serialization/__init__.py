"""Bodies into objects: JSON, YAML and protobuf, decoded by the types' schemas."""

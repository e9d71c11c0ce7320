"""The gRPC contract: generated code in v1, and `codec` between it and the model."""

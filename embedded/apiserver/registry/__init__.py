"""The rules under which objects are created, changed and deleted: defaults, strategies, allocation."""

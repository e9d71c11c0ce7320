"""What every kind of object shares: JSON, names, types, selectors, and the words of refusals."""

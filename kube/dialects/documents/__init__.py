"""Reading of documents: typed fields and their faults, durations, selectors, misspelt fields."""

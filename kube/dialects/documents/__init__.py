"""How documents are read: fields made typed and their faults named, durations, selectors, misspelt fields."""

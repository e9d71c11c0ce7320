"""Rows and answers as values: `sublet top`, `explain`, `simulate`, `replay`, `preflight`. Pure."""

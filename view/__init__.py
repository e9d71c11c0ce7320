"""Rows and answers for people: `sublet top`, `explain`, `simulate`, `replay`, `preflight`. Values in, values out."""

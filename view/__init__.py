"""Rows and answers in text: `sublet top`, `explain`, `simulate`, `replay`, `preflight`. Values in, values out."""

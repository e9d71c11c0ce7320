"""Jobs: objects of both kinds read into one model, their pods, and statuses written back."""

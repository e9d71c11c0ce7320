"""What may be lent and what is offered for it."""

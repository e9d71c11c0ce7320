"""Lending: what may be lent, what is offered of it, and what the scheduler and the Node are told."""

"""The agent's decisions: pure functions of state, facts, policy and time. No I/O, no clock."""

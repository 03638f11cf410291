"""A whole run, failure by failure: what interrupts it, what it falls back to, and where the hours go."""

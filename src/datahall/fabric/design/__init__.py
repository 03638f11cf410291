"""A fabric as a person asks for it: its topology of catalogue parts, what it counts, costs and draws."""

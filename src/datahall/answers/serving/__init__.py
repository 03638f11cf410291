"""Services in words: plans, fits, techniques and simulated fleets."""

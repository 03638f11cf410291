"""The plan of a service: every group of chips weighed in closed form, the best of each chip simulated, one chosen."""

"""The time of one engine step: kernels, exchange between chips, and the table that closed form and simulation share."""

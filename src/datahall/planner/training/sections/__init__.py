"""Chips of another kind that could join a run, beside those that it is planned on."""

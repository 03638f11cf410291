"""The concepts of a scenario, one struct each, whose fields are every input that a person can give."""

"""What is wanted of a plan: the least of something, within which limits, out of what."""

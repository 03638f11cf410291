"""Where data lies, and what is read from there."""

"""What our predictions are worth, and what is wrong with a file, in words."""

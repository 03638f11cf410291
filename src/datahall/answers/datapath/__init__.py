"""Whether data keeps up with the chips, in words."""

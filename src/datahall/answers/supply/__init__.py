"""Where chips can be had, in words: supply as a risk, and the regions that they stand in."""

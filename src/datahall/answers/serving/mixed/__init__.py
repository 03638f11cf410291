"""`plan serve` where not enough can be had of a kind of chip: a mixture in words, and why there is none."""

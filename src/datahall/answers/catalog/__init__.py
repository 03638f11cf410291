"""Lists of what the catalogue knows, prices, and new entries."""

"""Where a chip can be had: what keeps it from being had at all, and what a region costs and how far it is."""
